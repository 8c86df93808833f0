//! What programs do with files.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

type Done = Result<String, Box<dyn Error>>;

pub fn read(path: &str) -> Done {
    Ok(fs::read_to_string(path)?)
}

pub fn write(path: &str) -> Done {
    fs::write(path, "written")?;
    Ok("ok".into())
}

pub fn list(path: &str) -> Done {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let mark = if entry.file_type()?.is_dir() { "/" } else { "" };
        names.push(format!("{}{mark}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    Ok(names.join(" "))
}

fn fails<T>(done: io::Result<T>, kind: ErrorKind) {
    match done {
        Ok(_) => panic!("did not fail with {kind:?}"),
        Err(e) => assert_eq!(e.kind(), kind, "{e}"),
    }
}

fn says<T>(done: io::Result<T>, text: &str) {
    match done {
        Ok(_) => panic!("did not fail with {text}"),
        Err(e) => assert!(e.to_string().starts_with(text), "{e}"),
    }
}

/// Uses most of std::fs in a directory.
pub fn all(root: &str) -> Done {
    let root = Path::new(root);
    let at = |name: &str| root.join(name);

    fails(fs::read(at("none")), ErrorKind::NotFound);
    fs::create_dir_all(at("a/b/c"))?;
    fails(fs::create_dir(at("a")), ErrorKind::AlreadyExists);
    fails(fs::write(at("missing/x"), ""), ErrorKind::NotFound);
    assert!(fs::metadata(at("a"))?.is_dir());

    // Small, large, and what lies across pieces.
    fs::write(at("a/small"), "hello")?;
    assert_eq!(fs::read_to_string(at("a/small"))?, "hello");
    let large: Vec<u8> = (0..700_000u32).map(|i| (i * 31 >> 3) as u8).collect();
    fs::write(at("a/large"), &large)?;
    assert!(fs::read(at("a/large"))? == large);
    assert_eq!(fs::metadata(at("a/large"))?.len(), 700_000);
    assert_eq!(fs::copy(at("a/large"), at("a/copy"))?, 700_000);
    assert!(fs::read(at("a/copy"))? == large);

    // At the end, in the middle, and beyond the end.
    let mut f = OpenOptions::new().append(true).open(at("a/small"))?;
    f.write_all(b", world")?;
    drop(f);
    let mut f = OpenOptions::new().read(true).write(true).open(at("a/small"))?;
    f.seek(SeekFrom::Start(7))?;
    f.write_all(b"W")?;
    f.seek(SeekFrom::End(0))?;
    f.write_all(b"!")?;
    f.seek(SeekFrom::Start(20))?;
    f.write_all(b"x")?;
    f.rewind()?;
    let mut text = String::new();
    f.read_to_string(&mut text)?;
    assert_eq!(text, "hello, World!\0\0\0\0\0\0\0x");
    f.set_len(13)?;
    f.sync_all()?;
    assert_eq!(f.metadata()?.len(), 13);
    drop(f);
    let mut f = OpenOptions::new().write(true).open(at("a/large"))?;
    f.seek(SeekFrom::Start(300_000))?;
    f.write_all(b"in the middle")?;
    f.set_len(600_000)?;
    drop(f);
    let changed = fs::read(at("a/large"))?;
    assert_eq!(&changed[300_000..300_013], b"in the middle");
    assert!(changed.len() == 600_000 && changed[..300_000] == large[..300_000] && changed[300_013..] == large[300_013..600_000]);

    // Ways to open.
    fails(OpenOptions::new().write(true).create_new(true).open(at("a/small")), ErrorKind::AlreadyExists);
    OpenOptions::new().write(true).create_new(true).open(at("a/new"))?;
    OpenOptions::new().write(true).truncate(true).open(at("a/new"))?;
    assert!(File::open(at("a/small/x")).is_err());
    says(File::create(at("a/b")), "Is a directory");
    assert!(File::open(at("a/small"))?.write(b"x").is_err());

    // Lines.
    let mut w = BufWriter::new(File::create(at("lines"))?);
    for n in 0..1000 {
        writeln!(w, "line {n}")?;
    }
    w.flush()?;
    assert_eq!(BufReader::new(File::open(at("lines"))?).lines().count(), 1000);

    // Names.
    fs::rename(at("a/new"), at("a/b/newer"))?;
    fs::rename(at("a/b/newer"), at("a/copy"))?;
    assert_eq!(fs::read(at("a/copy"))?.len(), 0);
    fs::rename(at("a/b"), at("moved"))?;
    assert_eq!(list(at("a").to_str().unwrap())?, "copy large small");
    assert_eq!(list(root.to_str().unwrap())?, "a/ lines moved/");
    says(fs::remove_dir(at("a")), "Directory not empty");
    says(fs::remove_file(at("moved")), "Is a directory");
    fs::remove_file(at("a/copy"))?;
    fs::remove_dir_all(at("moved"))?;
    assert!(!at("moved").exists());
    assert!(fs::metadata(at("lines"))?.modified().is_ok());

    // What leads out, and what workspaces lack.
    says(fs::read(at("../../../../outside")), "Operation not permitted");
    says(fs::hard_link(at("lines"), at("hard")), "Not supported");
    fs::remove_dir_all(at("a"))?;
    fs::remove_file(at("lines"))?;
    Ok("ok".into())
}
