//! The attribute `#[stile::tool]`. Use it through the crate `stile`, which documents it.

mod expand;
#[cfg(test)]
mod tests;

/// See `stile::tool`.
#[proc_macro_attribute]
pub fn tool(
    options: proc_macro::TokenStream,
    function: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand::tool(options.into(), function.into())
        .unwrap_or_else(|e| e.to_compile_error())
        .into()
}
