//! usage: bindings REPOSITORY OUT
//!
//! Writes below OUT what `wit_bindgen::generate!` makes of the worlds in REPOSITORY/wit, each where its crate has it.

use std::path::Path;
use std::{env, fs};

use anyhow::{Context, Result};
use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator};
use wit_bindgen_rust::Opts;

fn bindings(wit: &Path, world: &str, options: Opts) -> Result<String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit)?;
    let world = resolve.select_world(&[package], Some(world))?;
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files)?;
    let (_, text) = files.iter().next().context("Cannot generate bindings: there is no text")?;
    Ok(prettyplease::unparse(&syn::parse_file(std::str::from_utf8(text)?)?))
}

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let (repository, out) = arguments.next().zip(arguments.next()).context("usage: bindings REPOSITORY OUT")?;
    let of_brain_tool = Opts {
        pub_export_macro: true,
        default_bindings_module: Some("brain_tool::bindings".into()),
        export_macro_name: Some("export_tool".into()),
        ..Opts::default()
    };
    for (crate_folder, world, options) in [
        ("examples-rust/brain-tool", "tool", of_brain_tool),
        ("examples-rust/agentloop", "agentloop", Opts::default()),
        ("test/fixtures/guests-rust/foreign-files", "tool", Opts::default()),
    ] {
        let file = Path::new(&out).join(crate_folder).join("src/bindings.rs");
        fs::create_dir_all(file.parent().context("Cannot write bindings: they have no folder")?)?;
        fs::write(file, bindings(&Path::new(&repository).join(format!("wit/{world}.wit")), world, options)?)?;
    }
    Ok(())
}
