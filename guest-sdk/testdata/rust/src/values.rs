use serde::Serialize;
use stile::Env;

#[derive(Serialize)]
struct Values {
    r#type: String,
    size: u64,
    text: String,
    bytes: Vec<u8>,
    names: usize,
}

/// Stores a text, and says what it then is
#[stile::tool]
fn values(env: &Env, text: String) -> stile::Result<Values> {
    let store = env.blob("blobs")?;
    let writer = store.create("text/plain")?;
    writer.append_text(&text)?;
    writer.append(b"!\n")?;
    let blob = store.finish(writer)?;
    Ok(Values {
        r#type: blob.media_type(),
        size: blob.size(),
        text: blob.text(1 << 20)?,
        bytes: blob.bytes(0, 2)?,
        names: env.names().len(),
    })
}
