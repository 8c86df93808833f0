//! A guest that does what goes wrong easily.

mod inputs;
mod values;

use std::{
    collections::HashMap,
    fmt, fs, process,
    time::{Duration, Instant},
};

use stile::{
    anyhow::{anyhow, bail, Context},
    blob, Env, Error,
};

/// Panics
#[stile::tool]
fn panics() {
    print!("before");
    panic!("the panic's text: {}", "ž");
}

struct Bad;

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("half")?;
        panic!("in the middle of a line")
    }
}

/// Panics while it prints
#[stile::tool]
fn panics_printing() {
    println!("{Bad}");
}

/// Panics at an index
#[stile::tool]
fn index(at: usize) -> u32 {
    [1, 2, 3][at]
}

/// Exits
#[stile::tool]
fn exits() {
    eprintln!("last words");
    process::exit(3);
}

/// Prints
#[stile::tool]
fn prints() {
    println!("to stdout");
    eprintln!("to stderr");
    print!("unfinished");
}

/// Looks for files
#[stile::tool]
fn files() -> Vec<bool> {
    vec![
        fs::read("/etc/passwd").is_err(),
        fs::metadata(".").is_err(),
        std::env::args().next().is_none(),
        std::env::vars().next().is_none(),
    ]
}

/// Sleeps
#[stile::tool]
fn sleeps(env: &Env, milliseconds: u64) -> stile::Result<bool> {
    let clock = env.clock("clock")?;
    let want = Duration::from_millis(milliseconds);
    let start = clock.monotonic();
    clock.sleep(want);
    Ok(u128::from(clock.monotonic() - start) >= want.as_nanos())
}

/// Sleeps with the standard library
#[stile::tool]
fn sleeps_std(milliseconds: u64) -> bool {
    let start = Instant::now();
    let want = Duration::from_millis(milliseconds);
    std::thread::sleep(want);
    start.elapsed() >= want
}

/// The order of a map with random seeds
#[stile::tool]
fn hashes() -> usize {
    (0..100).map(|n| (n, n)).collect::<HashMap<_, _>>().len()
}

/// Random bytes
#[stile::tool]
fn random(env: &Env) -> stile::Result<Vec<u8>> {
    Ok(env.random("random")?.bytes(17)?)
}

/// The first of two handles that is ready
#[stile::tool]
fn polls(env: &Env) -> stile::Result<Vec<u32>> {
    let clock = env.clock("clock")?;
    let (late, soon) = (clock.subscribe(60_000_000_000), clock.subscribe(1_000_000));
    Ok(stile::poll::poll(&[&late, &soon]))
}

/// Passes a handle on, which it no longer has then
#[stile::tool]
fn passes(env: &Env) -> stile::Result<Option<String>> {
    let inner = env.subset(&[]).map_err(|e| anyhow!(e))?;
    inner.put_kv("mine", env.kv("data")?)?;
    Ok(inner.kv("mine")?.get("x")?)
}

/// More handles than a call may have at a time
#[stile::tool]
fn drops(env: &Env) -> stile::Result<u64> {
    let store = env.blob("blobs")?;
    let mut sum = 0;
    for _ in 0..3000 {
        sum += store.finish(store.create("text/plain")?)?.size();
    }
    Ok(sum)
}

/// More handles than a call may have
#[stile::tool]
fn keeps(env: &Env) -> stile::Result<usize> {
    let store = env.blob("blobs")?;
    let kept: Result<Vec<blob::Writer>, Error> =
        (0..3000).map(|_| store.create("text/plain")).collect();
    Ok(kept?.len())
}

#[derive(Debug)]
struct Wrapped(Error);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "wrapped")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Fails in a way
#[stile::tool]
fn fails(env: &Env, how: String) -> stile::Result<()> {
    match how.as_str() {
        "context" => {
            env.kv("none").context("open the notes")?;
        }
        "wrapped" => {
            env.kv("none").map_err(Wrapped)?;
        }
        "caught" => match env.kv("none") {
            Err(Error::Denied(denial)) => bail!("caught: {}", denial.reason),
            other => bail!("{other:?}"),
        },
        "increment" => {
            let data = env.kv("data")?;
            data.set("text", "x")?;
            data.increment("text", 1).context("count")?;
        }
        "number" => {
            "x".parse::<u32>().context("read the number")?;
        }
        _ => bail!("no such way"),
    }
    Ok(())
}

/// Fails with an error of its own
#[stile::tool]
fn fails_typed() -> Result<u32, std::num::ParseIntError> {
    "x".parse()
}

/// Denied by an error of a capability
#[stile::tool]
fn fails_denied(env: &Env) -> Result<Option<String>, Error> {
    env.kv("none")?.get("x")
}

/// Each way to random numbers
#[stile::tool]
fn draws(env: &Env) -> stile::Result<std::collections::BTreeMap<&'static str, String>> {
    let random = env.random("random")?;
    let hash = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 1);
    Ok([
        ("bytes", format!("{:?}", random.bytes(17)?)),
        ("u64", random.u64().to_string()),
        ("RandomState", hash.to_string()),
    ]
    .into())
}
