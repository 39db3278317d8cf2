use std::fs::{self, DirEntry, FileType, Metadata};
use std::io;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

/// With paths of 200 bytes, this many entries still fit the megabyte that one result may have.
const MAX_ENTRIES: usize = 4_000;

#[derive(Debug, Default, JsonSchema, PartialEq, Serialize)]
pub struct Listing {
    /// Directories before what they hold, names in order of their bytes.
    pub entries: Vec<Entry>,
    pub total_bytes: u64,
    /// Whether there were more entries than a result can hold.
    pub truncated: bool,
}

#[derive(Debug, JsonSchema, PartialEq, Serialize)]
pub struct Entry {
    pub path: String,
    pub kind: Kind,
    /// Bytes of a file; 0 for everything else.
    pub size: u64,
}

#[derive(Clone, Copy, Debug, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Other,
}

impl From<FileType> for Kind {
    fn from(of: FileType) -> Self {
        if of.is_file() {
            Self::File
        } else if of.is_dir() {
            Self::Directory
        } else if of.is_symlink() {
            Self::Symlink
        } else {
            Self::Other
        }
    }
}

/// Lists `depth` levels below a directory, or the one file that `root` is.
pub fn list(root: &Path, depth: u32) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let metadata = fs::metadata(root)?;
    if metadata.is_dir() {
        listing.add_directory(root, depth)?;
    } else {
        listing.add(root, metadata.file_type().into(), || Ok(metadata))?;
    }
    Ok(listing)
}

impl Listing {
    fn add_directory(&mut self, directory: &Path, depth: u32) -> io::Result<()> {
        let mut children = fs::read_dir(directory)?.collect::<io::Result<Vec<DirEntry>>>()?;
        children.sort_by_key(DirEntry::file_name);
        for child in children {
            if self.entries.len() == MAX_ENTRIES {
                self.truncated = true;
                return Ok(());
            }
            let kind = Kind::from(child.file_type()?);
            let path = child.path();
            self.add(&path, kind, || child.metadata())?;
            if kind == Kind::Directory && depth > 1 {
                self.add_directory(&path, depth - 1)?;
            }
        }
        Ok(())
    }

    /// Only files are worth the round trip that their size costs.
    fn add(&mut self, path: &Path, kind: Kind, metadata: impl FnOnce() -> io::Result<Metadata>) -> io::Result<()> {
        let size = if kind == Kind::File { metadata()?.len() } else { 0 };
        self.total_bytes += size;
        self.entries.push(Entry { path: path.display().to_string(), kind, size });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, usize)]) -> Self {
            let root = std::env::temp_dir().join(format!("brain-inspect-{}-{name}", std::process::id()));
            fs::create_dir(&root).unwrap();
            for (path, size) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, vec![b'x'; *size]).unwrap();
            }
            Self(root)
        }

        fn listed(&self, depth: u32) -> Vec<(String, Kind, u64)> {
            let root = format!("{}/", self.0.display());
            let entries = list(&self.0, depth).unwrap().entries.into_iter();
            entries.map(|entry| (entry.path.replace(&root, ""), entry.kind, entry.size)).collect()
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn depth_bounds_the_levels() {
        let tree = Tree::new("depth", &[("b.txt", 3), ("a/inner/deep.txt", 5), ("a/z.txt", 1)]);
        let flat = vec![("a".to_owned(), Kind::Directory, 0), ("b.txt".to_owned(), Kind::File, 3)];
        assert_eq!(tree.listed(1), flat);
        let names = tree.listed(2).into_iter().map(|(path, ..)| path).collect::<Vec<_>>();
        assert_eq!(names, ["a", "a/inner", "a/z.txt", "b.txt"]);
        assert_eq!(list(&tree.0, 3).unwrap().total_bytes, 9);
    }

    #[test]
    fn a_file_is_its_own_only_entry() {
        let tree = Tree::new("file", &[("one.txt", 4)]);
        let listing = list(&tree.0.join("one.txt"), 1).unwrap();
        assert_eq!((listing.entries.len(), listing.entries[0].kind, listing.total_bytes), (1, Kind::File, 4));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_named_and_not_followed() {
        let tree = Tree::new("link", &[]);
        std::os::unix::fs::symlink("/", tree.0.join("root")).unwrap();
        assert_eq!(tree.listed(9), [("root".to_owned(), Kind::Symlink, 0)]);
    }

    #[test]
    fn a_long_listing_says_that_it_was_cut() {
        let names = (0..MAX_ENTRIES + 1).map(|n| n.to_string()).collect::<Vec<_>>();
        let tree = Tree::new("long", &names.iter().map(|name| (name.as_str(), 0)).collect::<Vec<_>>());
        let listing = list(&tree.0, 1).unwrap();
        assert_eq!((listing.entries.len(), listing.truncated), (MAX_ENTRIES, true));
    }

    #[test]
    fn a_missing_path_is_an_error() {
        assert_eq!(list(Path::new("/no/such/path"), 1).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
