pub type Invocation = brain::tool::types::Invocation;
pub type ToolError = brain::tool::types::ToolError;
#[doc(hidden)]
#[allow(non_snake_case, unused_unsafe)]
pub unsafe fn _export_run_cabi<T_: Guest>(
    arg0: *mut u8,
    arg1: usize,
    arg2: *mut u8,
    arg3: usize,
    arg4: i64,
) -> *mut u8 {
    unsafe {
        #[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
        let result2 = {
            let len0 = arg1;
            let bytes0 = _rt::Vec::from_raw_parts(arg0.cast(), len0, len0);
            let len1 = arg3;
            let bytes1 = _rt::Vec::from_raw_parts(arg2.cast(), len1, len1);
            T_::run(brain::tool::types::Invocation {
                input_json: _rt::string_lift(bytes0),
                configuration_json: _rt::string_lift(bytes1),
                deadline_at_ms: arg4 as u64,
            })
        };
        let ptr3 = (&raw mut _RET_AREA.0).cast::<u8>();
        match result2 {
            Ok(e) => {
                *ptr3.add(0).cast::<u8>() = (0i32) as u8;
                let vec4 = (e.into_bytes()).into_boxed_slice();
                let ptr4 = vec4.as_ptr().cast::<u8>();
                let len4 = vec4.len();
                ::core::mem::forget(vec4);
                *ptr3.add(2 * ::core::mem::size_of::<*const u8>()).cast::<usize>() = len4;
                *ptr3.add(::core::mem::size_of::<*const u8>()).cast::<*mut u8>() = ptr4
                    .cast_mut();
            }
            Err(e) => {
                *ptr3.add(0).cast::<u8>() = (1i32) as u8;
                let brain::tool::types::ToolError { code: code5, message: message5 } = e;
                let vec6 = (code5.into_bytes()).into_boxed_slice();
                let ptr6 = vec6.as_ptr().cast::<u8>();
                let len6 = vec6.len();
                ::core::mem::forget(vec6);
                *ptr3.add(2 * ::core::mem::size_of::<*const u8>()).cast::<usize>() = len6;
                *ptr3.add(::core::mem::size_of::<*const u8>()).cast::<*mut u8>() = ptr6
                    .cast_mut();
                let vec7 = (message5.into_bytes()).into_boxed_slice();
                let ptr7 = vec7.as_ptr().cast::<u8>();
                let len7 = vec7.len();
                ::core::mem::forget(vec7);
                *ptr3.add(4 * ::core::mem::size_of::<*const u8>()).cast::<usize>() = len7;
                *ptr3.add(3 * ::core::mem::size_of::<*const u8>()).cast::<*mut u8>() = ptr7
                    .cast_mut();
            }
        };
        ptr3
    }
}
#[doc(hidden)]
#[allow(non_snake_case)]
pub unsafe fn __post_return_run<T_: Guest>(arg0: *mut u8) {
    unsafe {
        let l0 = i32::from(*arg0.add(0).cast::<u8>());
        match l0 {
            0 => {
                let l1 = *arg0
                    .add(::core::mem::size_of::<*const u8>())
                    .cast::<*mut u8>();
                let l2 = *arg0
                    .add(2 * ::core::mem::size_of::<*const u8>())
                    .cast::<usize>();
                _rt::cabi_dealloc(l1, l2, 1);
            }
            _ => {
                let l3 = *arg0
                    .add(::core::mem::size_of::<*const u8>())
                    .cast::<*mut u8>();
                let l4 = *arg0
                    .add(2 * ::core::mem::size_of::<*const u8>())
                    .cast::<usize>();
                _rt::cabi_dealloc(l3, l4, 1);
                let l5 = *arg0
                    .add(3 * ::core::mem::size_of::<*const u8>())
                    .cast::<*mut u8>();
                let l6 = *arg0
                    .add(4 * ::core::mem::size_of::<*const u8>())
                    .cast::<usize>();
                _rt::cabi_dealloc(l5, l6, 1);
            }
        }
    }
}
pub trait Guest {
    /// Runs one call in a fresh instance. The text it returns is the JSON of one result; an empty text is none.
    /// Returning does not finish the execution: an ordinary tool calls `finish` first.
    #[allow(async_fn_in_trait)]
    fn run(input: Invocation) -> ::core::result::Result<_rt::String, ToolError>;
}
#[doc(hidden)]
#[macro_export]
macro_rules! __export_world_tool_cabi {
    ($ty:ident with_types_in $($path_to_types:tt)*) => {
        const _ : () = { #[unsafe (export_name = "run")] unsafe extern "C" fn
        export_run(arg0 : * mut u8, arg1 : usize, arg2 : * mut u8, arg3 : usize, arg4 :
        i64,) -> * mut u8 { unsafe { $($path_to_types)*:: _export_run_cabi::<$ty > (arg0,
        arg1, arg2, arg3, arg4) } } #[unsafe (export_name = "cabi_post_run")] unsafe
        extern "C" fn _post_return_run(arg0 : * mut u8,) { unsafe { $($path_to_types)*::
        __post_return_run::<$ty > (arg0) } } };
    };
}
#[doc(hidden)]
pub use __export_world_tool_cabi;
#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
struct _RetArea([::core::mem::MaybeUninit<u8>; 5 * ::core::mem::size_of::<*const u8>()]);
static mut _RET_AREA: _RetArea = _RetArea(
    [::core::mem::MaybeUninit::uninit(); 5 * ::core::mem::size_of::<*const u8>()],
);
#[allow(dead_code, clippy::all)]
pub mod brain {
    pub mod tool {
        /// Data that the host and a tool exchange.
        #[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
        pub mod types {
            #[used]
            #[doc(hidden)]
            static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
            use super::super::super::_rt;
            /// One call of a tool.
            #[derive(Clone)]
            pub struct Invocation {
                /// The arguments of the call: the text of a JSON value that the tool's input schema accepts.
                pub input_json: _rt::String,
                /// The options with which the tool was placed: the text of a JSON value.
                pub configuration_json: _rt::String,
                /// The instant at which the host stops the tool, in milliseconds since the Unix epoch; 0 = never.
                pub deadline_at_ms: u64,
            }
            impl ::core::fmt::Debug for Invocation {
                fn fmt(
                    &self,
                    f: &mut ::core::fmt::Formatter<'_>,
                ) -> ::core::fmt::Result {
                    f.debug_struct("Invocation")
                        .field("input-json", &self.input_json)
                        .field("configuration-json", &self.configuration_json)
                        .field("deadline-at-ms", &self.deadline_at_ms)
                        .finish()
                }
            }
            /// Why something failed: `code` is an identifier for programs, `message` is for people.
            #[derive(Clone)]
            pub struct ToolError {
                pub code: _rt::String,
                pub message: _rt::String,
            }
            impl ::core::fmt::Debug for ToolError {
                fn fmt(
                    &self,
                    f: &mut ::core::fmt::Formatter<'_>,
                ) -> ::core::fmt::Result {
                    f.debug_struct("ToolError")
                        .field("code", &self.code)
                        .field("message", &self.message)
                        .finish()
                }
            }
            impl ::core::fmt::Display for ToolError {
                fn fmt(
                    &self,
                    f: &mut ::core::fmt::Formatter<'_>,
                ) -> ::core::fmt::Result {
                    write!(f, "{:?}", self)
                }
            }
            impl ::core::error::Error for ToolError {}
        }
        /// What a tool may ask of its host. A parameter named `…-json` is the text of one JSON value.
        /// A function that answers a number answers the journal sequence of the record it committed.
        #[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
        pub mod host {
            #[used]
            #[doc(hidden)]
            static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
            use super::super::super::_rt;
            pub type ToolError = super::super::super::brain::tool::types::ToolError;
            #[allow(unused_unsafe, clippy::all)]
            /// Lists, reads or controls the environments that this tool was granted.
            #[allow(async_fn_in_trait)]
            pub fn environments(
                request_json: &str,
            ) -> ::core::result::Result<_rt::String, ToolError> {
                unsafe {
                    #[cfg_attr(target_pointer_width = "64", repr(align(8)))]
                    #[cfg_attr(target_pointer_width = "32", repr(align(4)))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 5 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 5
                            * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = request_json;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:tool/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "environments"]
                        fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
                        unreachable!()
                    }
                    wit_import2(ptr0.cast_mut(), len0, ptr1);
                    let l3 = i32::from(*ptr1.add(0).cast::<u8>());
                    let result13 = match l3 {
                        0 => {
                            let e = {
                                let l4 = *ptr1
                                    .add(::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l5 = *ptr1
                                    .add(2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len6 = l5;
                                let bytes6 = _rt::Vec::from_raw_parts(
                                    l4.cast(),
                                    len6,
                                    len6,
                                );
                                _rt::string_lift(bytes6)
                            };
                            Ok(e)
                        }
                        1 => {
                            let e = {
                                let l7 = *ptr1
                                    .add(::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l8 = *ptr1
                                    .add(2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len9 = l8;
                                let bytes9 = _rt::Vec::from_raw_parts(
                                    l7.cast(),
                                    len9,
                                    len9,
                                );
                                let l10 = *ptr1
                                    .add(3 * ::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l11 = *ptr1
                                    .add(4 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len12 = l11;
                                let bytes12 = _rt::Vec::from_raw_parts(
                                    l10.cast(),
                                    len12,
                                    len12,
                                );
                                super::super::super::brain::tool::types::ToolError {
                                    code: _rt::string_lift(bytes9),
                                    message: _rt::string_lift(bytes12),
                                }
                            };
                            Err(e)
                        }
                        _ => _rt::invalid_enum_discriminant(),
                    };
                    result13
                }
            }
            #[allow(unused_unsafe, clippy::all)]
            /// Asks the session's model. Nothing is inherited: no system prompt, no tools, no messages.
            #[allow(async_fn_in_trait)]
            pub fn model(
                request_json: &str,
            ) -> ::core::result::Result<_rt::String, ToolError> {
                unsafe {
                    #[cfg_attr(target_pointer_width = "64", repr(align(8)))]
                    #[cfg_attr(target_pointer_width = "32", repr(align(4)))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 5 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 5
                            * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = request_json;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:tool/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "model"]
                        fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
                        unreachable!()
                    }
                    wit_import2(ptr0.cast_mut(), len0, ptr1);
                    let l3 = i32::from(*ptr1.add(0).cast::<u8>());
                    let result13 = match l3 {
                        0 => {
                            let e = {
                                let l4 = *ptr1
                                    .add(::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l5 = *ptr1
                                    .add(2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len6 = l5;
                                let bytes6 = _rt::Vec::from_raw_parts(
                                    l4.cast(),
                                    len6,
                                    len6,
                                );
                                _rt::string_lift(bytes6)
                            };
                            Ok(e)
                        }
                        1 => {
                            let e = {
                                let l7 = *ptr1
                                    .add(::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l8 = *ptr1
                                    .add(2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len9 = l8;
                                let bytes9 = _rt::Vec::from_raw_parts(
                                    l7.cast(),
                                    len9,
                                    len9,
                                );
                                let l10 = *ptr1
                                    .add(3 * ::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l11 = *ptr1
                                    .add(4 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len12 = l11;
                                let bytes12 = _rt::Vec::from_raw_parts(
                                    l10.cast(),
                                    len12,
                                    len12,
                                );
                                super::super::super::brain::tool::types::ToolError {
                                    code: _rt::string_lift(bytes9),
                                    message: _rt::string_lift(bytes12),
                                }
                            };
                            Err(e)
                        }
                        _ => _rt::invalid_enum_discriminant(),
                    };
                    result13
                }
            }
            #[allow(unused_unsafe, clippy::all)]
            /// Commits an event of the tool's own kind.
            #[allow(async_fn_in_trait)]
            pub fn emit(
                kind: &str,
                payload_json: &str,
            ) -> ::core::result::Result<u64, ToolError> {
                unsafe {
                    #[repr(align(8))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 8 + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 8
                            + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = kind;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let vec1 = payload_json;
                    let ptr1 = vec1.as_ptr().cast::<u8>();
                    let len1 = vec1.len();
                    let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:tool/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "emit"]
                        fn wit_import3(
                            _: *mut u8,
                            _: usize,
                            _: *mut u8,
                            _: usize,
                            _: *mut u8,
                        );
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import3(
                        _: *mut u8,
                        _: usize,
                        _: *mut u8,
                        _: usize,
                        _: *mut u8,
                    ) {
                        unreachable!()
                    }
                    wit_import3(ptr0.cast_mut(), len0, ptr1.cast_mut(), len1, ptr2);
                    let l4 = i32::from(*ptr2.add(0).cast::<u8>());
                    let result12 = match l4 {
                        0 => {
                            let e = {
                                let l5 = *ptr2.add(8).cast::<i64>();
                                l5 as u64
                            };
                            Ok(e)
                        }
                        1 => {
                            let e = {
                                let l6 = *ptr2.add(8).cast::<*mut u8>();
                                let l7 = *ptr2
                                    .add(8 + 1 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len8 = l7;
                                let bytes8 = _rt::Vec::from_raw_parts(
                                    l6.cast(),
                                    len8,
                                    len8,
                                );
                                let l9 = *ptr2
                                    .add(8 + 2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l10 = *ptr2
                                    .add(8 + 3 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len11 = l10;
                                let bytes11 = _rt::Vec::from_raw_parts(
                                    l9.cast(),
                                    len11,
                                    len11,
                                );
                                super::super::super::brain::tool::types::ToolError {
                                    code: _rt::string_lift(bytes8),
                                    message: _rt::string_lift(bytes11),
                                }
                            };
                            Err(e)
                        }
                        _ => _rt::invalid_enum_discriminant(),
                    };
                    result12
                }
            }
            #[allow(unused_unsafe, clippy::all)]
            /// Commits one result, given as an Outcome; the execution stays open.
            #[allow(async_fn_in_trait)]
            pub fn emit_result(
                outcome_json: &str,
            ) -> ::core::result::Result<u64, ToolError> {
                unsafe {
                    #[repr(align(8))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 8 + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 8
                            + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = outcome_json;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:tool/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "emit-result"]
                        fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
                        unreachable!()
                    }
                    wit_import2(ptr0.cast_mut(), len0, ptr1);
                    let l3 = i32::from(*ptr1.add(0).cast::<u8>());
                    let result11 = match l3 {
                        0 => {
                            let e = {
                                let l4 = *ptr1.add(8).cast::<i64>();
                                l4 as u64
                            };
                            Ok(e)
                        }
                        1 => {
                            let e = {
                                let l5 = *ptr1.add(8).cast::<*mut u8>();
                                let l6 = *ptr1
                                    .add(8 + 1 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len7 = l6;
                                let bytes7 = _rt::Vec::from_raw_parts(
                                    l5.cast(),
                                    len7,
                                    len7,
                                );
                                let l8 = *ptr1
                                    .add(8 + 2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l9 = *ptr1
                                    .add(8 + 3 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len10 = l9;
                                let bytes10 = _rt::Vec::from_raw_parts(
                                    l8.cast(),
                                    len10,
                                    len10,
                                );
                                super::super::super::brain::tool::types::ToolError {
                                    code: _rt::string_lift(bytes7),
                                    message: _rt::string_lift(bytes10),
                                }
                            };
                            Err(e)
                        }
                        _ => _rt::invalid_enum_discriminant(),
                    };
                    result11
                }
            }
            #[allow(unused_unsafe, clippy::all)]
            /// Ends the synchronous phase, with or without a result; `run` may go on working.
            #[allow(async_fn_in_trait)]
            pub fn returned(
                outcome_json: ::core::option::Option<&str>,
            ) -> ::core::result::Result<u64, ToolError> {
                unsafe {
                    #[repr(align(8))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 8 + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 8
                            + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let (result1_0, result1_1, result1_2) = match outcome_json {
                        Some(e) => {
                            let vec0 = e;
                            let ptr0 = vec0.as_ptr().cast::<u8>();
                            let len0 = vec0.len();
                            (1i32, ptr0.cast_mut(), len0)
                        }
                        None => (0i32, ::core::ptr::null_mut(), 0usize),
                    };
                    let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:tool/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "returned"]
                        fn wit_import3(_: i32, _: *mut u8, _: usize, _: *mut u8);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import3(
                        _: i32,
                        _: *mut u8,
                        _: usize,
                        _: *mut u8,
                    ) {
                        unreachable!()
                    }
                    wit_import3(result1_0, result1_1, result1_2, ptr2);
                    let l4 = i32::from(*ptr2.add(0).cast::<u8>());
                    let result12 = match l4 {
                        0 => {
                            let e = {
                                let l5 = *ptr2.add(8).cast::<i64>();
                                l5 as u64
                            };
                            Ok(e)
                        }
                        1 => {
                            let e = {
                                let l6 = *ptr2.add(8).cast::<*mut u8>();
                                let l7 = *ptr2
                                    .add(8 + 1 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len8 = l7;
                                let bytes8 = _rt::Vec::from_raw_parts(
                                    l6.cast(),
                                    len8,
                                    len8,
                                );
                                let l9 = *ptr2
                                    .add(8 + 2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l10 = *ptr2
                                    .add(8 + 3 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len11 = l10;
                                let bytes11 = _rt::Vec::from_raw_parts(
                                    l9.cast(),
                                    len11,
                                    len11,
                                );
                                super::super::super::brain::tool::types::ToolError {
                                    code: _rt::string_lift(bytes8),
                                    message: _rt::string_lift(bytes11),
                                }
                            };
                            Err(e)
                        }
                        _ => _rt::invalid_enum_discriminant(),
                    };
                    result12
                }
            }
            #[allow(unused_unsafe, clippy::all)]
            /// Ends the execution, with or without a last result. Nothing is accepted after it.
            #[allow(async_fn_in_trait)]
            pub fn finish(
                outcome_json: ::core::option::Option<&str>,
            ) -> ::core::result::Result<u64, ToolError> {
                unsafe {
                    #[repr(align(8))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 8 + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 8
                            + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let (result1_0, result1_1, result1_2) = match outcome_json {
                        Some(e) => {
                            let vec0 = e;
                            let ptr0 = vec0.as_ptr().cast::<u8>();
                            let len0 = vec0.len();
                            (1i32, ptr0.cast_mut(), len0)
                        }
                        None => (0i32, ::core::ptr::null_mut(), 0usize),
                    };
                    let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:tool/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "finish"]
                        fn wit_import3(_: i32, _: *mut u8, _: usize, _: *mut u8);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import3(
                        _: i32,
                        _: *mut u8,
                        _: usize,
                        _: *mut u8,
                    ) {
                        unreachable!()
                    }
                    wit_import3(result1_0, result1_1, result1_2, ptr2);
                    let l4 = i32::from(*ptr2.add(0).cast::<u8>());
                    let result12 = match l4 {
                        0 => {
                            let e = {
                                let l5 = *ptr2.add(8).cast::<i64>();
                                l5 as u64
                            };
                            Ok(e)
                        }
                        1 => {
                            let e = {
                                let l6 = *ptr2.add(8).cast::<*mut u8>();
                                let l7 = *ptr2
                                    .add(8 + 1 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len8 = l7;
                                let bytes8 = _rt::Vec::from_raw_parts(
                                    l6.cast(),
                                    len8,
                                    len8,
                                );
                                let l9 = *ptr2
                                    .add(8 + 2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l10 = *ptr2
                                    .add(8 + 3 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len11 = l10;
                                let bytes11 = _rt::Vec::from_raw_parts(
                                    l9.cast(),
                                    len11,
                                    len11,
                                );
                                super::super::super::brain::tool::types::ToolError {
                                    code: _rt::string_lift(bytes8),
                                    message: _rt::string_lift(bytes11),
                                }
                            };
                            Err(e)
                        }
                        _ => _rt::invalid_enum_discriminant(),
                    };
                    result12
                }
            }
            #[allow(unused_unsafe, clippy::all)]
            /// Leaves a diagnostic record in the call's log. Best effort: it is never journalled and never fails.
            #[allow(async_fn_in_trait)]
            pub fn telemetry(record_json: &str) -> () {
                unsafe {
                    let vec0 = record_json;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:tool/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "telemetry"]
                        fn wit_import1(_: *mut u8, _: usize);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import1(_: *mut u8, _: usize) {
                        unreachable!()
                    }
                    wit_import1(ptr0.cast_mut(), len0);
                }
            }
        }
    }
}
mod _rt {
    #![allow(dead_code, unused_imports, clippy::all)]
    pub use alloc_crate::string::String;
    pub use alloc_crate::vec::Vec;
    pub unsafe fn string_lift(bytes: Vec<u8>) -> String {
        if cfg!(debug_assertions) {
            String::from_utf8(bytes).unwrap()
        } else {
            unsafe { String::from_utf8_unchecked(bytes) }
        }
    }
    pub unsafe fn invalid_enum_discriminant<T>() -> T {
        if cfg!(debug_assertions) {
            panic!("invalid enum discriminant")
        } else {
            unsafe { core::hint::unreachable_unchecked() }
        }
    }
    #[cfg(target_arch = "wasm32")]
    pub fn run_ctors_once() {
        wit_bindgen::rt::run_ctors_once();
    }
    pub unsafe fn cabi_dealloc(ptr: *mut u8, size: usize, align: usize) {
        if size == 0 {
            return;
        }
        unsafe {
            let layout = alloc::Layout::from_size_align_unchecked(size, align);
            alloc::dealloc(ptr, layout);
        }
    }
    extern crate alloc as alloc_crate;
    pub use alloc_crate::alloc;
}
/// Generates `#[unsafe(no_mangle)]` functions to export the specified type as
/// the root implementation of all generated traits.
///
/// For more information see the documentation of `wit_bindgen::generate!`.
///
/// ```rust
/// # macro_rules! export_tool{ ($($t:tt)*) => (); }
/// # trait Guest {}
/// struct MyType;
///
/// impl Guest for MyType {
///     // ...
/// }
///
/// export_tool!(MyType);
/// ```
#[allow(unused_macros)]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_tool_impl {
    ($ty:ident) => {
        brain_tool::bindings::export_tool!($ty with_types_in brain_tool::bindings);
    };
    ($ty:ident with_types_in $($path_to_types_root:tt)*) => {
        $($path_to_types_root)*:: __export_world_tool_cabi!($ty with_types_in
        $($path_to_types_root)*); const _ : () = { #[cfg(target_arch = "wasm32")]
        #[unsafe (link_section =
        "component-type:wit-bindgen:0.61.1:brain:tool@0.2.0:tool:imports and exports")]
        #[doc(hidden)] #[allow(clippy::octal_escapes)] pub static
        __WIT_BINDGEN_COMPONENT_TYPE : [u8; 629] = *
        b"\
\0asm\x0d\0\x01\0\0\x19\x16wit-component-encoding\x04\0\x07\xfa\x03\x01A\x02\x01\
A\x0b\x01B\x04\x01r\x03\x0ainput-jsons\x12configuration-jsons\x0edeadline-at-msw\
\x04\0\x0ainvocation\x03\0\0\x01r\x02\x04codes\x07messages\x04\0\x0atool-error\x03\
\0\x02\x03\0\x16brain:tool/types@0.2.0\x05\0\x02\x03\0\0\x0atool-error\x01B\x11\x02\
\x03\x02\x01\x01\x04\0\x0atool-error\x03\0\0\x01j\x01s\x01\x01\x01@\x01\x0creque\
st-jsons\0\x02\x04\0\x0cenvironments\x01\x03\x04\0\x05model\x01\x03\x01j\x01w\x01\
\x01\x01@\x02\x04kinds\x0cpayload-jsons\0\x04\x04\0\x04emit\x01\x05\x01@\x01\x0c\
outcome-jsons\0\x04\x04\0\x0bemit-result\x01\x06\x01ks\x01@\x01\x0coutcome-json\x07\
\0\x04\x04\0\x08returned\x01\x08\x04\0\x06finish\x01\x08\x01@\x01\x0brecord-json\
s\x01\0\x04\0\x09telemetry\x01\x09\x03\0\x15brain:tool/host@0.2.0\x05\x02\x02\x03\
\0\0\x0ainvocation\x03\0\x0ainvocation\x03\0\x03\x03\0\x0atool-error\x03\0\x01\x01\
j\x01s\x01\x05\x01@\x01\x05input\x04\0\x06\x04\0\x03run\x01\x07\x04\0\x15brain:t\
ool/tool@0.2.0\x04\0\x0b\x0a\x01\0\x04tool\x03\0\0\0G\x09producers\x01\x0cproces\
sed-by\x02\x0dwit-component\x070.258.3\x10wit-bindgen-rust\x060.61.1";
        };
    };
}
#[doc(inline)]
pub use __export_tool_impl as export_tool;
#[cfg(target_arch = "wasm32")]
#[unsafe(
    link_section = "component-type:wit-bindgen:0.61.1:brain:tool@0.2.0:tool-with-all-of-its-exports-removed:encoded world"
)]
#[doc(hidden)]
#[allow(clippy::octal_escapes)]
pub static __WIT_BINDGEN_COMPONENT_TYPE: [u8; 667] = *b"\
\0asm\x0d\0\x01\0\0\x19\x16wit-component-encoding\x04\0\x07\x80\x04\x01A\x02\x01\
A\x08\x01B\x04\x01r\x03\x0ainput-jsons\x12configuration-jsons\x0edeadline-at-msw\
\x04\0\x0ainvocation\x03\0\0\x01r\x02\x04codes\x07messages\x04\0\x0atool-error\x03\
\0\x02\x03\0\x16brain:tool/types@0.2.0\x05\0\x02\x03\0\0\x0atool-error\x01B\x11\x02\
\x03\x02\x01\x01\x04\0\x0atool-error\x03\0\0\x01j\x01s\x01\x01\x01@\x01\x0creque\
st-jsons\0\x02\x04\0\x0cenvironments\x01\x03\x04\0\x05model\x01\x03\x01j\x01w\x01\
\x01\x01@\x02\x04kinds\x0cpayload-jsons\0\x04\x04\0\x04emit\x01\x05\x01@\x01\x0c\
outcome-jsons\0\x04\x04\0\x0bemit-result\x01\x06\x01ks\x01@\x01\x0coutcome-json\x07\
\0\x04\x04\0\x08returned\x01\x08\x04\0\x06finish\x01\x08\x01@\x01\x0brecord-json\
s\x01\0\x04\0\x09telemetry\x01\x09\x03\0\x15brain:tool/host@0.2.0\x05\x02\x02\x03\
\0\0\x0ainvocation\x03\0\x0ainvocation\x03\0\x03\x03\0\x0atool-error\x03\0\x01\x04\
\05brain:tool/tool-with-all-of-its-exports-removed@0.2.0\x04\0\x0b*\x01\0$tool-w\
ith-all-of-its-exports-removed\x03\0\0\0G\x09producers\x01\x0cprocessed-by\x02\x0d\
wit-component\x070.258.3\x10wit-bindgen-rust\x060.61.1";
#[inline(never)]
#[doc(hidden)]
pub fn __link_custom_section_describing_imports() {
    wit_bindgen::rt::maybe_link_cabi_realloc();
}
