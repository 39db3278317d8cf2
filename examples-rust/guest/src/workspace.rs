use std::path::{Path, PathBuf};

/// Where a granted workspace is mounted.
pub const WORKSPACE: &str = "/workspace";

/// The path that the caller of a tool means: relative paths are relative to the workspace.
pub fn workspace_path(path: &str) -> PathBuf {
    Path::new(WORKSPACE).join(path).components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_mean_the_workspace() {
        for (given, meant) in [
            ("", "/workspace"),
            (".", "/workspace"),
            ("./notes/a.txt", "/workspace/notes/a.txt"),
            ("notes//a.txt/", "/workspace/notes/a.txt"),
            ("/workspace/a", "/workspace/a"),
            ("/scratch/a", "/scratch/a"),
        ] {
            assert_eq!(workspace_path(given), Path::new(meant), "{given:?}");
        }
    }

    #[test]
    fn parents_are_left_to_the_host_to_judge() {
        assert_eq!(workspace_path("../secret"), Path::new("/workspace/../secret"));
    }
}
