pub type TurnInput = brain::agentloop::types::TurnInput;
pub type TurnOutput = brain::agentloop::types::TurnOutput;
pub type TurnError = brain::agentloop::types::TurnError;
#[doc(hidden)]
#[allow(non_snake_case, unused_unsafe)]
pub unsafe fn _export_turn_cabi<T_: Guest>(arg0: *mut u8) -> *mut u8 {
    unsafe {
        #[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
        let result25 = {
            let l0 = *arg0.add(0).cast::<*mut u8>();
            let l1 = *arg0.add(::core::mem::size_of::<*const u8>()).cast::<usize>();
            let len2 = l1;
            let bytes2 = _rt::Vec::from_raw_parts(l0.cast(), len2, len2);
            let l3 = *arg0
                .add(2 * ::core::mem::size_of::<*const u8>())
                .cast::<*mut u8>();
            let l4 = *arg0.add(3 * ::core::mem::size_of::<*const u8>()).cast::<usize>();
            let len5 = l4;
            let bytes5 = _rt::Vec::from_raw_parts(l3.cast(), len5, len5);
            let l6 = *arg0
                .add(4 * ::core::mem::size_of::<*const u8>())
                .cast::<*mut u8>();
            let l7 = *arg0.add(5 * ::core::mem::size_of::<*const u8>()).cast::<usize>();
            let len8 = l7;
            let bytes8 = _rt::Vec::from_raw_parts(l6.cast(), len8, len8);
            let l9 = *arg0
                .add(6 * ::core::mem::size_of::<*const u8>())
                .cast::<*mut u8>();
            let l10 = *arg0.add(7 * ::core::mem::size_of::<*const u8>()).cast::<usize>();
            let len11 = l10;
            let bytes11 = _rt::Vec::from_raw_parts(l9.cast(), len11, len11);
            let l12 = *arg0
                .add(8 * ::core::mem::size_of::<*const u8>())
                .cast::<*mut u8>();
            let l13 = *arg0.add(9 * ::core::mem::size_of::<*const u8>()).cast::<usize>();
            let len14 = l13;
            let bytes14 = _rt::Vec::from_raw_parts(l12.cast(), len14, len14);
            let l15 = *arg0
                .add(10 * ::core::mem::size_of::<*const u8>())
                .cast::<*mut u8>();
            let l16 = *arg0
                .add(11 * ::core::mem::size_of::<*const u8>())
                .cast::<usize>();
            let len17 = l16;
            let bytes17 = _rt::Vec::from_raw_parts(l15.cast(), len17, len17);
            let l18 = *arg0
                .add(12 * ::core::mem::size_of::<*const u8>())
                .cast::<*mut u8>();
            let l19 = *arg0
                .add(13 * ::core::mem::size_of::<*const u8>())
                .cast::<usize>();
            let len20 = l19;
            let bytes20 = _rt::Vec::from_raw_parts(l18.cast(), len20, len20);
            let l21 = *arg0.add(14 * ::core::mem::size_of::<*const u8>()).cast::<i64>();
            let l22 = *arg0
                .add(8 + 14 * ::core::mem::size_of::<*const u8>())
                .cast::<*mut u8>();
            let l23 = *arg0
                .add(8 + 15 * ::core::mem::size_of::<*const u8>())
                .cast::<usize>();
            let len24 = l23;
            T_::turn(brain::agentloop::types::TurnInput {
                input_json: _rt::string_lift(bytes2),
                transcript_json: _rt::string_lift(bytes5),
                kv_json: _rt::string_lift(bytes8),
                events_json: _rt::string_lift(bytes11),
                configuration_json: _rt::string_lift(bytes14),
                system: _rt::string_lift(bytes17),
                tools_json: _rt::string_lift(bytes20),
                runtime: brain::agentloop::types::Runtime {
                    logical_time_ms: l21 as u64,
                    deterministic_seed: <_ as From<
                        _rt::Vec<_>,
                    >>::from(_rt::Vec::from_raw_parts(l22.cast(), len24, len24)),
                },
            })
        };
        _rt::cabi_dealloc(arg0, 8 + 16 * ::core::mem::size_of::<*const u8>(), 8);
        let ptr26 = (&raw mut _RET_AREA.0).cast::<u8>();
        match result25 {
            Ok(e) => {
                *ptr26.add(0).cast::<u8>() = (0i32) as u8;
                let brain::agentloop::types::TurnOutput { result_json: result_json27 } = e;
                match result_json27 {
                    Some(e) => {
                        *ptr26.add(::core::mem::size_of::<*const u8>()).cast::<u8>() = (1i32)
                            as u8;
                        let vec28 = (e.into_bytes()).into_boxed_slice();
                        let ptr28 = vec28.as_ptr().cast::<u8>();
                        let len28 = vec28.len();
                        ::core::mem::forget(vec28);
                        *ptr26
                            .add(3 * ::core::mem::size_of::<*const u8>())
                            .cast::<usize>() = len28;
                        *ptr26
                            .add(2 * ::core::mem::size_of::<*const u8>())
                            .cast::<*mut u8>() = ptr28.cast_mut();
                    }
                    None => {
                        *ptr26.add(::core::mem::size_of::<*const u8>()).cast::<u8>() = (0i32)
                            as u8;
                    }
                };
            }
            Err(e) => {
                *ptr26.add(0).cast::<u8>() = (1i32) as u8;
                let brain::agentloop::types::TurnError {
                    code: code29,
                    message: message29,
                    retryable: retryable29,
                } = e;
                let vec30 = (code29.into_bytes()).into_boxed_slice();
                let ptr30 = vec30.as_ptr().cast::<u8>();
                let len30 = vec30.len();
                ::core::mem::forget(vec30);
                *ptr26.add(2 * ::core::mem::size_of::<*const u8>()).cast::<usize>() = len30;
                *ptr26.add(::core::mem::size_of::<*const u8>()).cast::<*mut u8>() = ptr30
                    .cast_mut();
                let vec31 = (message29.into_bytes()).into_boxed_slice();
                let ptr31 = vec31.as_ptr().cast::<u8>();
                let len31 = vec31.len();
                ::core::mem::forget(vec31);
                *ptr26.add(4 * ::core::mem::size_of::<*const u8>()).cast::<usize>() = len31;
                *ptr26.add(3 * ::core::mem::size_of::<*const u8>()).cast::<*mut u8>() = ptr31
                    .cast_mut();
                *ptr26.add(5 * ::core::mem::size_of::<*const u8>()).cast::<u8>() = (match retryable29 {
                    true => 1,
                    false => 0,
                }) as u8;
            }
        };
        ptr26
    }
}
#[doc(hidden)]
#[allow(non_snake_case)]
pub unsafe fn __post_return_turn<T_: Guest>(arg0: *mut u8) {
    unsafe {
        let l0 = i32::from(*arg0.add(0).cast::<u8>());
        match l0 {
            0 => {
                let l1 = i32::from(
                    *arg0.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
                );
                match l1 {
                    0 => {}
                    _ => {
                        let l2 = *arg0
                            .add(2 * ::core::mem::size_of::<*const u8>())
                            .cast::<*mut u8>();
                        let l3 = *arg0
                            .add(3 * ::core::mem::size_of::<*const u8>())
                            .cast::<usize>();
                        _rt::cabi_dealloc(l2, l3, 1);
                    }
                }
            }
            _ => {
                let l4 = *arg0
                    .add(::core::mem::size_of::<*const u8>())
                    .cast::<*mut u8>();
                let l5 = *arg0
                    .add(2 * ::core::mem::size_of::<*const u8>())
                    .cast::<usize>();
                _rt::cabi_dealloc(l4, l5, 1);
                let l6 = *arg0
                    .add(3 * ::core::mem::size_of::<*const u8>())
                    .cast::<*mut u8>();
                let l7 = *arg0
                    .add(4 * ::core::mem::size_of::<*const u8>())
                    .cast::<usize>();
                _rt::cabi_dealloc(l6, l7, 1);
            }
        }
    }
}
pub trait Guest {
    /// Runs one activation in a fresh instance. An error fails the turn, and so does a trap.
    #[allow(async_fn_in_trait)]
    fn turn(input: TurnInput) -> ::core::result::Result<TurnOutput, TurnError>;
}
#[doc(hidden)]
macro_rules! __export_world_agentloop_cabi {
    ($ty:ident with_types_in $($path_to_types:tt)*) => {
        const _ : () = { #[unsafe (export_name = "turn")] unsafe extern "C" fn
        export_turn(arg0 : * mut u8,) -> * mut u8 { unsafe { $($path_to_types)*::
        _export_turn_cabi::<$ty > (arg0) } } #[unsafe (export_name = "cabi_post_turn")]
        unsafe extern "C" fn _post_return_turn(arg0 : * mut u8,) { unsafe {
        $($path_to_types)*:: __post_return_turn::<$ty > (arg0) } } };
    };
}
#[doc(hidden)]
pub(crate) use __export_world_agentloop_cabi;
#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
struct _RetArea([::core::mem::MaybeUninit<u8>; 6 * ::core::mem::size_of::<*const u8>()]);
static mut _RET_AREA: _RetArea = _RetArea(
    [::core::mem::MaybeUninit::uninit(); 6 * ::core::mem::size_of::<*const u8>()],
);
#[allow(dead_code, clippy::all)]
pub mod brain {
    pub mod agentloop {
        /// Data that the host and an agentloop exchange.
        #[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
        pub mod types {
            #[used]
            #[doc(hidden)]
            static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
            use super::super::super::_rt;
            /// Time and randomness that are the same whenever this activation is looked at again.
            #[derive(Clone)]
            pub struct Runtime {
                /// When the activation began, in milliseconds since the Unix epoch, as the journal has it.
                pub logical_time_ms: u64,
                /// 32 bytes, made of the session and the sequence of the activation.
                pub deterministic_seed: _rt::Vec<u8>,
            }
            impl ::core::fmt::Debug for Runtime {
                fn fmt(
                    &self,
                    f: &mut ::core::fmt::Formatter<'_>,
                ) -> ::core::fmt::Result {
                    f.debug_struct("Runtime")
                        .field("logical-time-ms", &self.logical_time_ms)
                        .field("deterministic-seed", &self.deterministic_seed)
                        .finish()
                }
            }
            /// What one activation starts from. A member named `…-json` is the text of one JSON value.
            #[derive(Clone)]
            pub struct TurnInput {
                /// What the user sent; `null` where later records woke the session.
                pub input_json: _rt::String,
                /// The conversation so far: an array of messages.
                pub transcript_json: _rt::String,
                /// What the loop has kept of earlier activations: an object.
                pub kv_json: _rt::String,
                /// At most 1000 records since the last activation that ended well, oldest first.
                pub events_json: _rt::String,
                /// What the session was created with for this loop.
                pub configuration_json: _rt::String,
                /// The session's system prompt; empty where it has none.
                pub system: _rt::String,
                /// The session's tools: an array of `{name, description, input_schema, output_schema, environments}`.
                pub tools_json: _rt::String,
                pub runtime: Runtime,
            }
            impl ::core::fmt::Debug for TurnInput {
                fn fmt(
                    &self,
                    f: &mut ::core::fmt::Formatter<'_>,
                ) -> ::core::fmt::Result {
                    f.debug_struct("TurnInput")
                        .field("input-json", &self.input_json)
                        .field("transcript-json", &self.transcript_json)
                        .field("kv-json", &self.kv_json)
                        .field("events-json", &self.events_json)
                        .field("configuration-json", &self.configuration_json)
                        .field("system", &self.system)
                        .field("tools-json", &self.tools_json)
                        .field("runtime", &self.runtime)
                        .finish()
                }
            }
            #[derive(Clone)]
            pub struct TurnOutput {
                /// What the turn came to, as `turn_ended` will have it.
                pub result_json: ::core::option::Option<_rt::String>,
            }
            impl ::core::fmt::Debug for TurnOutput {
                fn fmt(
                    &self,
                    f: &mut ::core::fmt::Formatter<'_>,
                ) -> ::core::fmt::Result {
                    f.debug_struct("TurnOutput")
                        .field("result-json", &self.result_json)
                        .finish()
                }
            }
            /// Why something failed: `code` is an identifier for programs, `message` is for people.
            #[derive(Clone)]
            pub struct TurnError {
                pub code: _rt::String,
                pub message: _rt::String,
                /// Whether the same request may succeed later.
                pub retryable: bool,
            }
            impl ::core::fmt::Debug for TurnError {
                fn fmt(
                    &self,
                    f: &mut ::core::fmt::Formatter<'_>,
                ) -> ::core::fmt::Result {
                    f.debug_struct("TurnError")
                        .field("code", &self.code)
                        .field("message", &self.message)
                        .field("retryable", &self.retryable)
                        .finish()
                }
            }
            impl ::core::fmt::Display for TurnError {
                fn fmt(
                    &self,
                    f: &mut ::core::fmt::Formatter<'_>,
                ) -> ::core::fmt::Result {
                    write!(f, "{:?}", self)
                }
            }
            impl ::core::error::Error for TurnError {}
        }
        /// What an agentloop may ask of its host, while its activation lasts.
        /// A function that answers a number answers the journal sequence of the record it committed.
        #[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
        pub mod host {
            #[used]
            #[doc(hidden)]
            static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
            use super::super::super::_rt;
            pub type TurnError = super::super::super::brain::agentloop::types::TurnError;
            #[allow(unused_unsafe, clippy::all)]
            /// Asks the session's model: `{messages, system?, tools?, response_format?, max_output_tokens?, options?}`.
            /// What is left out is the session's own. Answers `{message, stop_reason, usage}`.
            #[allow(async_fn_in_trait)]
            pub fn model(
                request_json: &str,
            ) -> ::core::result::Result<_rt::String, TurnError> {
                unsafe {
                    #[cfg_attr(target_pointer_width = "64", repr(align(8)))]
                    #[cfg_attr(target_pointer_width = "32", repr(align(4)))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 6 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 6
                            * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = request_json;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:agentloop/host@0.2.0")]
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
                    let result14 = match l3 {
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
                                let l13 = i32::from(
                                    *ptr1
                                        .add(5 * ::core::mem::size_of::<*const u8>())
                                        .cast::<u8>(),
                                );
                                super::super::super::brain::agentloop::types::TurnError {
                                    code: _rt::string_lift(bytes9),
                                    message: _rt::string_lift(bytes12),
                                    retryable: _rt::bool_lift(l13 as u8),
                                }
                            };
                            Err(e)
                        }
                        _ => _rt::invalid_enum_discriminant(),
                    };
                    result14
                }
            }
            #[allow(unused_unsafe, clippy::all)]
            /// Calls tools: an array of `{call_id, name, environment, input}`, all at once. Answers when each has returned or ended,
            /// with an array of `{call_id, sequence, events, finished}` in the same order.
            #[allow(async_fn_in_trait)]
            pub fn dispatch(
                calls_json: &str,
            ) -> ::core::result::Result<_rt::String, TurnError> {
                unsafe {
                    #[cfg_attr(target_pointer_width = "64", repr(align(8)))]
                    #[cfg_attr(target_pointer_width = "32", repr(align(4)))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 6 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 6
                            * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = calls_json;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:agentloop/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "dispatch"]
                        fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
                        unreachable!()
                    }
                    wit_import2(ptr0.cast_mut(), len0, ptr1);
                    let l3 = i32::from(*ptr1.add(0).cast::<u8>());
                    let result14 = match l3 {
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
                                let l13 = i32::from(
                                    *ptr1
                                        .add(5 * ::core::mem::size_of::<*const u8>())
                                        .cast::<u8>(),
                                );
                                super::super::super::brain::agentloop::types::TurnError {
                                    code: _rt::string_lift(bytes9),
                                    message: _rt::string_lift(bytes12),
                                    retryable: _rt::bool_lift(l13 as u8),
                                }
                            };
                            Err(e)
                        }
                        _ => _rt::invalid_enum_discriminant(),
                    };
                    result14
                }
            }
            #[allow(unused_unsafe, clippy::all)]
            /// Reads the journal on from a sequence: `{events, next_cursor}`, empty at its end.
            #[allow(async_fn_in_trait)]
            pub fn events(after: u64) -> ::core::result::Result<_rt::String, TurnError> {
                unsafe {
                    #[cfg_attr(target_pointer_width = "64", repr(align(8)))]
                    #[cfg_attr(target_pointer_width = "32", repr(align(4)))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 6 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 6
                            * ::core::mem::size_of::<*const u8>()],
                    );
                    let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:agentloop/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "events"]
                        fn wit_import1(_: i64, _: *mut u8);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import1(_: i64, _: *mut u8) {
                        unreachable!()
                    }
                    wit_import1(_rt::as_i64(&after), ptr0);
                    let l2 = i32::from(*ptr0.add(0).cast::<u8>());
                    let result13 = match l2 {
                        0 => {
                            let e = {
                                let l3 = *ptr0
                                    .add(::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l4 = *ptr0
                                    .add(2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len5 = l4;
                                let bytes5 = _rt::Vec::from_raw_parts(
                                    l3.cast(),
                                    len5,
                                    len5,
                                );
                                _rt::string_lift(bytes5)
                            };
                            Ok(e)
                        }
                        1 => {
                            let e = {
                                let l6 = *ptr0
                                    .add(::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l7 = *ptr0
                                    .add(2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len8 = l7;
                                let bytes8 = _rt::Vec::from_raw_parts(
                                    l6.cast(),
                                    len8,
                                    len8,
                                );
                                let l9 = *ptr0
                                    .add(3 * ::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l10 = *ptr0
                                    .add(4 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len11 = l10;
                                let bytes11 = _rt::Vec::from_raw_parts(
                                    l9.cast(),
                                    len11,
                                    len11,
                                );
                                let l12 = i32::from(
                                    *ptr0
                                        .add(5 * ::core::mem::size_of::<*const u8>())
                                        .cast::<u8>(),
                                );
                                super::super::super::brain::agentloop::types::TurnError {
                                    code: _rt::string_lift(bytes8),
                                    message: _rt::string_lift(bytes11),
                                    retryable: _rt::bool_lift(l12 as u8),
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
            /// Makes this array of messages the transcript.
            #[allow(async_fn_in_trait)]
            pub fn set_transcript(
                messages_json: &str,
            ) -> ::core::result::Result<u64, TurnError> {
                unsafe {
                    #[repr(align(8))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 16 + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 16
                            + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = messages_json;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:agentloop/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "set-transcript"]
                        fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
                        unreachable!()
                    }
                    wit_import2(ptr0.cast_mut(), len0, ptr1);
                    let l3 = i32::from(*ptr1.add(0).cast::<u8>());
                    let result12 = match l3 {
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
                                let l11 = i32::from(
                                    *ptr1
                                        .add(8 + 4 * ::core::mem::size_of::<*const u8>())
                                        .cast::<u8>(),
                                );
                                super::super::super::brain::agentloop::types::TurnError {
                                    code: _rt::string_lift(bytes7),
                                    message: _rt::string_lift(bytes10),
                                    retryable: _rt::bool_lift(l11 as u8),
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
            /// A value that was put; none where there is none.
            #[allow(async_fn_in_trait)]
            pub fn kv_read(
                key: &str,
            ) -> ::core::result::Result<::core::option::Option<_rt::String>, TurnError> {
                unsafe {
                    #[cfg_attr(target_pointer_width = "64", repr(align(8)))]
                    #[cfg_attr(target_pointer_width = "32", repr(align(4)))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 6 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 6
                            * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = key;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:agentloop/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "kv-read"]
                        fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
                        unreachable!()
                    }
                    wit_import2(ptr0.cast_mut(), len0, ptr1);
                    let l3 = i32::from(*ptr1.add(0).cast::<u8>());
                    let result15 = match l3 {
                        0 => {
                            let e = {
                                let l4 = i32::from(
                                    *ptr1.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
                                );
                                match l4 {
                                    0 => None,
                                    1 => {
                                        let e = {
                                            let l5 = *ptr1
                                                .add(2 * ::core::mem::size_of::<*const u8>())
                                                .cast::<*mut u8>();
                                            let l6 = *ptr1
                                                .add(3 * ::core::mem::size_of::<*const u8>())
                                                .cast::<usize>();
                                            let len7 = l6;
                                            let bytes7 = _rt::Vec::from_raw_parts(
                                                l5.cast(),
                                                len7,
                                                len7,
                                            );
                                            _rt::string_lift(bytes7)
                                        };
                                        Some(e)
                                    }
                                    _ => _rt::invalid_enum_discriminant(),
                                }
                            };
                            Ok(e)
                        }
                        1 => {
                            let e = {
                                let l8 = *ptr1
                                    .add(::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l9 = *ptr1
                                    .add(2 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len10 = l9;
                                let bytes10 = _rt::Vec::from_raw_parts(
                                    l8.cast(),
                                    len10,
                                    len10,
                                );
                                let l11 = *ptr1
                                    .add(3 * ::core::mem::size_of::<*const u8>())
                                    .cast::<*mut u8>();
                                let l12 = *ptr1
                                    .add(4 * ::core::mem::size_of::<*const u8>())
                                    .cast::<usize>();
                                let len13 = l12;
                                let bytes13 = _rt::Vec::from_raw_parts(
                                    l11.cast(),
                                    len13,
                                    len13,
                                );
                                let l14 = i32::from(
                                    *ptr1
                                        .add(5 * ::core::mem::size_of::<*const u8>())
                                        .cast::<u8>(),
                                );
                                super::super::super::brain::agentloop::types::TurnError {
                                    code: _rt::string_lift(bytes10),
                                    message: _rt::string_lift(bytes13),
                                    retryable: _rt::bool_lift(l14 as u8),
                                }
                            };
                            Err(e)
                        }
                        _ => _rt::invalid_enum_discriminant(),
                    };
                    result15
                }
            }
            #[allow(unused_unsafe, clippy::all)]
            #[allow(async_fn_in_trait)]
            pub fn kv_put(
                key: &str,
                value_json: &str,
            ) -> ::core::result::Result<u64, TurnError> {
                unsafe {
                    #[repr(align(8))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 16 + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 16
                            + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = key;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let vec1 = value_json;
                    let ptr1 = vec1.as_ptr().cast::<u8>();
                    let len1 = vec1.len();
                    let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:agentloop/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "kv-put"]
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
                    let result13 = match l4 {
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
                                let l12 = i32::from(
                                    *ptr2
                                        .add(8 + 4 * ::core::mem::size_of::<*const u8>())
                                        .cast::<u8>(),
                                );
                                super::super::super::brain::agentloop::types::TurnError {
                                    code: _rt::string_lift(bytes8),
                                    message: _rt::string_lift(bytes11),
                                    retryable: _rt::bool_lift(l12 as u8),
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
            #[allow(async_fn_in_trait)]
            pub fn kv_delete(key: &str) -> ::core::result::Result<u64, TurnError> {
                unsafe {
                    #[repr(align(8))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 16 + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 16
                            + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = key;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:agentloop/host@0.2.0")]
                    unsafe extern "C" {
                        #[link_name = "kv-delete"]
                        fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
                    }
                    #[cfg(not(target_arch = "wasm32"))]
                    unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
                        unreachable!()
                    }
                    wit_import2(ptr0.cast_mut(), len0, ptr1);
                    let l3 = i32::from(*ptr1.add(0).cast::<u8>());
                    let result12 = match l3 {
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
                                let l11 = i32::from(
                                    *ptr1
                                        .add(8 + 4 * ::core::mem::size_of::<*const u8>())
                                        .cast::<u8>(),
                                );
                                super::super::super::brain::agentloop::types::TurnError {
                                    code: _rt::string_lift(bytes7),
                                    message: _rt::string_lift(bytes10),
                                    retryable: _rt::bool_lift(l11 as u8),
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
            /// Commits an event: `output_emitted` for what the user is shown, or a kind of the loop's own.
            #[allow(async_fn_in_trait)]
            pub fn emit(
                kind: &str,
                payload_json: &str,
            ) -> ::core::result::Result<u64, TurnError> {
                unsafe {
                    #[repr(align(8))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 16 + 4 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 16
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
                    #[link(wasm_import_module = "brain:agentloop/host@0.2.0")]
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
                    let result13 = match l4 {
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
                                let l12 = i32::from(
                                    *ptr2
                                        .add(8 + 4 * ::core::mem::size_of::<*const u8>())
                                        .cast::<u8>(),
                                );
                                super::super::super::brain::agentloop::types::TurnError {
                                    code: _rt::string_lift(bytes8),
                                    message: _rt::string_lift(bytes11),
                                    retryable: _rt::bool_lift(l12 as u8),
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
            /// Lists, reads or controls the environments that this loop was granted.
            #[allow(async_fn_in_trait)]
            pub fn environments(
                request_json: &str,
            ) -> ::core::result::Result<_rt::String, TurnError> {
                unsafe {
                    #[cfg_attr(target_pointer_width = "64", repr(align(8)))]
                    #[cfg_attr(target_pointer_width = "32", repr(align(4)))]
                    struct RetArea(
                        [::core::mem::MaybeUninit<
                            u8,
                        >; 6 * ::core::mem::size_of::<*const u8>()],
                    );
                    let mut ret_area = RetArea(
                        [::core::mem::MaybeUninit::uninit(); 6
                            * ::core::mem::size_of::<*const u8>()],
                    );
                    let vec0 = request_json;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:agentloop/host@0.2.0")]
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
                    let result14 = match l3 {
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
                                let l13 = i32::from(
                                    *ptr1
                                        .add(5 * ::core::mem::size_of::<*const u8>())
                                        .cast::<u8>(),
                                );
                                super::super::super::brain::agentloop::types::TurnError {
                                    code: _rt::string_lift(bytes9),
                                    message: _rt::string_lift(bytes12),
                                    retryable: _rt::bool_lift(l13 as u8),
                                }
                            };
                            Err(e)
                        }
                        _ => _rt::invalid_enum_discriminant(),
                    };
                    result14
                }
            }
            #[allow(unused_unsafe, clippy::all)]
            /// Leaves a diagnostic record in the activation's log. Best effort: it is never journalled and never fails.
            #[allow(async_fn_in_trait)]
            pub fn telemetry(record_json: &str) -> () {
                unsafe {
                    let vec0 = record_json;
                    let ptr0 = vec0.as_ptr().cast::<u8>();
                    let len0 = vec0.len();
                    #[cfg(target_arch = "wasm32")]
                    #[link(wasm_import_module = "brain:agentloop/host@0.2.0")]
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
    pub use alloc_crate::vec::Vec;
    pub use alloc_crate::string::String;
    pub unsafe fn string_lift(bytes: Vec<u8>) -> String {
        if cfg!(debug_assertions) {
            String::from_utf8(bytes).unwrap()
        } else {
            unsafe { String::from_utf8_unchecked(bytes) }
        }
    }
    pub unsafe fn bool_lift(val: u8) -> bool {
        if cfg!(debug_assertions) {
            match val {
                0 => false,
                1 => true,
                _ => panic!("invalid bool discriminant"),
            }
        } else {
            val != 0
        }
    }
    pub unsafe fn invalid_enum_discriminant<T>() -> T {
        if cfg!(debug_assertions) {
            panic!("invalid enum discriminant")
        } else {
            unsafe { core::hint::unreachable_unchecked() }
        }
    }
    pub fn as_i64<T: AsI64>(t: T) -> i64 {
        t.as_i64()
    }
    pub trait AsI64 {
        fn as_i64(self) -> i64;
    }
    impl<'a, T: Copy + AsI64> AsI64 for &'a T {
        fn as_i64(self) -> i64 {
            (*self).as_i64()
        }
    }
    impl AsI64 for i64 {
        #[inline]
        fn as_i64(self) -> i64 {
            self as i64
        }
    }
    impl AsI64 for u64 {
        #[inline]
        fn as_i64(self) -> i64 {
            self as i64
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
/// # macro_rules! export{ ($($t:tt)*) => (); }
/// # trait Guest {}
/// struct MyType;
///
/// impl Guest for MyType {
///     // ...
/// }
///
/// export!(MyType);
/// ```
#[allow(unused_macros)]
#[doc(hidden)]
macro_rules! __export_agentloop_impl {
    ($ty:ident) => {
        self::export!($ty with_types_in self);
    };
    ($ty:ident with_types_in $($path_to_types_root:tt)*) => {
        $($path_to_types_root)*:: __export_world_agentloop_cabi!($ty with_types_in
        $($path_to_types_root)*);
    };
}
#[doc(inline)]
pub(crate) use __export_agentloop_impl as export;
#[cfg(target_arch = "wasm32")]
#[unsafe(
    link_section = "component-type:wit-bindgen:0.61.1:brain:agentloop@0.2.0:agentloop:encoded world"
)]
#[doc(hidden)]
#[allow(clippy::octal_escapes)]
pub static __WIT_BINDGEN_COMPONENT_TYPE: [u8; 942] = *b"\
\0asm\x0d\0\x01\0\0\x19\x16wit-component-encoding\x04\0\x07\xae\x06\x01A\x02\x01\
A\x0d\x01B\x0a\x01p}\x01r\x02\x0flogical-time-msw\x12deterministic-seed\0\x04\0\x07\
runtime\x03\0\x01\x01r\x08\x0ainput-jsons\x0ftranscript-jsons\x07kv-jsons\x0beve\
nts-jsons\x12configuration-jsons\x06systems\x0atools-jsons\x07runtime\x02\x04\0\x0a\
turn-input\x03\0\x03\x01ks\x01r\x01\x0bresult-json\x05\x04\0\x0bturn-output\x03\0\
\x06\x01r\x03\x04codes\x07messages\x09retryable\x7f\x04\0\x0aturn-error\x03\0\x08\
\x03\0\x1bbrain:agentloop/types@0.2.0\x05\0\x02\x03\0\0\x0aturn-error\x01B\x19\x02\
\x03\x02\x01\x01\x04\0\x0aturn-error\x03\0\0\x01j\x01s\x01\x01\x01@\x01\x0creque\
st-jsons\0\x02\x04\0\x05model\x01\x03\x01@\x01\x0acalls-jsons\0\x02\x04\0\x08dis\
patch\x01\x04\x01@\x01\x05afterw\0\x02\x04\0\x06events\x01\x05\x01j\x01w\x01\x01\
\x01@\x01\x0dmessages-jsons\0\x06\x04\0\x0eset-transcript\x01\x07\x01ks\x01j\x01\
\x08\x01\x01\x01@\x01\x03keys\0\x09\x04\0\x07kv-read\x01\x0a\x01@\x02\x03keys\x0a\
value-jsons\0\x06\x04\0\x06kv-put\x01\x0b\x01@\x01\x03keys\0\x06\x04\0\x09kv-del\
ete\x01\x0c\x01@\x02\x04kinds\x0cpayload-jsons\0\x06\x04\0\x04emit\x01\x0d\x04\0\
\x0cenvironments\x01\x03\x01@\x01\x0brecord-jsons\x01\0\x04\0\x09telemetry\x01\x0e\
\x03\0\x1abrain:agentloop/host@0.2.0\x05\x02\x02\x03\0\0\x0aturn-input\x03\0\x0a\
turn-input\x03\0\x03\x02\x03\0\0\x0bturn-output\x03\0\x0bturn-output\x03\0\x05\x03\
\0\x0aturn-error\x03\0\x01\x01j\x01\x06\x01\x07\x01@\x01\x05input\x04\0\x08\x04\0\
\x04turn\x01\x09\x04\0\x1fbrain:agentloop/agentloop@0.2.0\x04\0\x0b\x0f\x01\0\x09\
agentloop\x03\0\0\0G\x09producers\x01\x0cprocessed-by\x02\x0dwit-component\x070.\
258.3\x10wit-bindgen-rust\x060.61.1";
#[inline(never)]
#[doc(hidden)]
pub fn __link_custom_section_describing_imports() {
    wit_bindgen::rt::maybe_link_cabi_realloc();
}
