use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    ext::IdentExt, parse::Parser, parse2, spanned::Spanned, Attribute, Error, Expr, ExprLit, FnArg,
    Ident, ItemFn, Lit, LitStr, Meta, MetaNameValue, Pat, PatType, Result, ReturnType, Safety,
    Type, TypePath,
};

/// Expands `#[stile::tool(options)] function`.
pub(crate) fn tool(options: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let mut function: ItemFn = parse2(function)?;
    let options = Options::parse(options)?;
    plain(&function)?;
    let description = doc(&function.attrs)?;
    if description.is_empty() {
        return Err(Error::new(
            function.sig.ident.span(),
            "a tool needs a doc comment: it is the description that a model reads",
        ));
    }
    let name = match &options.name {
        Some(name) => name.value(),
        None => function.sig.ident.unraw().to_string(),
    };
    if !is_name(&name) {
        let span = options
            .name
            .map_or(function.sig.ident.span(), |name| name.span());
        return Err(Error::new(
            span,
            format!("{name:?} cannot be the name of a tool: at most 64 letters, digits, '_', '.' or '-', beginning with a letter"),
        ));
    }
    let input = Parameters::take(&mut function)?;

    let private = quote!(::stile::__private);
    let (definition, parsed) = (input.definition(&private), input.parsed());
    let arguments = input.arguments();
    let ident = &function.sig.ident;
    let outcome = match &function.sig.output {
        ReturnType::Default => quote!(#private::value(#ident(#(#arguments),*))),
        ReturnType::Type(_, output) => {
            let wrap = match last_segment(output) {
                Some(name) if name == "Result" => format_ident!("result"),
                _ => format_ident!("value"),
            };
            // An error in the type is reported where the function names it.
            let mut ident = ident.clone();
            ident.set_span(ident.span().located_at(output.span()));
            quote_spanned!(output.span()=> ::stile::__private::#wrap(#ident(#(#arguments),*)))
        }
    };
    let hints = [
        ("read_only", options.read_only),
        ("destructive", options.destructive),
        ("idempotent", options.idempotent),
        ("open_world", options.open_world),
    ]
    .map(|(name, is)| {
        let name = format_ident!("{name}");
        quote!(#name: #is)
    });
    let conditions = function.attrs.iter().filter(|a| a.path().is_ident("cfg"));

    Ok(quote! {
        #function

        #(#conditions)*
        const _: () = {
            #definition

            fn run(__stile_env: &::stile::Env, input: &str) -> #private::Outcome {
                let __stile_input: __StileInput = #private::parse(input)?;
                #parsed
                #outcome
            }

            #private::inventory::submit! {
                #private::Tool {
                    name: #name,
                    description: #description,
                    annotations: ::stile::Annotations { #(#hints),* },
                    schema: #private::schema::<__StileInput>,
                    run,
                }
            }
        };
    })
}

/// What stands in the parentheses of the attribute.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
}

impl Options {
    fn parse(options: TokenStream) -> Result<Self> {
        let mut o = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("name") {
                o.name = Some(meta.value()?.parse()?);
                return Ok(());
            }
            let flag = if meta.path.is_ident("read_only") {
                &mut o.read_only
            } else if meta.path.is_ident("destructive") {
                &mut o.destructive
            } else if meta.path.is_ident("idempotent") {
                &mut o.idempotent
            } else if meta.path.is_ident("open_world") {
                &mut o.open_world
            } else {
                return Err(meta.error(
                    "a tool has `name = \"...\"`, `read_only`, `destructive`, `idempotent` and `open_world`",
                ));
            };
            *flag = true;
            Ok(())
        });
        parser.parse2(options)?;
        Ok(o)
    }
}

/// Refuses what a tool cannot be.
fn plain(function: &ItemFn) -> Result<()> {
    let sig = &function.sig;
    let refused: [(Option<Span>, &str); 5] = [
        (
            sig.asyncness.map(|t| t.span()),
            "a tool is not async: a call waits only for handles, with `block` of what `subscribe` returns, or with `stile::poll::poll`",
        ),
        (
            matches!(sig.safety, Safety::Unsafe(_)).then(|| sig.safety.span()),
            "a tool is not unsafe",
        ),
        (
            sig.abi.as_ref().map(|t| t.span()),
            "a tool is a function of Rust, without `extern`",
        ),
        (
            (!sig.generics.params.is_empty()).then(|| sig.generics.span()),
            "a tool has no generic parameters, because its input has one schema",
        ),
        (
            sig.variadic.as_ref().map(|t| t.span()),
            "a tool has a fixed number of parameters",
        ),
    ];
    match refused
        .into_iter()
        .find_map(|(span, reason)| Some((span?, reason)))
    {
        Some((span, reason)) => Err(Error::new(span, reason)),
        None => Ok(()),
    }
}

/// What a tool takes.
struct Parameters {
    env: bool,
    input: Kind,
}

enum Kind {
    /// The type in `Input<T>`.
    Whole(Box<Type>),
    Fields(Vec<Field>),
}

struct Field {
    attributes: Vec<Attribute>,
    name: Ident,
    r#type: Type,
}

impl Parameters {
    /// Reads the parameters, and takes their attributes off the function.
    fn take(function: &mut ItemFn) -> Result<Self> {
        let mut env = false;
        let mut whole = None;
        let mut fields = vec![];
        let count = function.sig.inputs.len();
        for (position, argument) in function.sig.inputs.iter_mut().enumerate() {
            let argument = match argument {
                FnArg::Typed(argument) => argument,
                FnArg::Receiver(receiver) => {
                    return Err(Error::new(
                        receiver.span(),
                        "a tool is a function without `self`",
                    ))
                }
            };
            if is_env(argument, position)? {
                env = true;
            } else if last_segment(&argument.ty).is_some_and(|name| name == "Input") {
                if count > 1 + usize::from(env) {
                    return Err(Error::new(
                        argument.ty.span(),
                        "`Input` is the whole input: only `&Env` may stand beside it",
                    ));
                }
                whole = Some(inner(&argument.ty)?);
            } else {
                fields.push(Field::take(argument)?);
            }
        }
        Ok(Self {
            env,
            input: match whole {
                Some(t) => Kind::Whole(Box::new(t)),
                None => Kind::Fields(fields),
            },
        })
    }

    /// The type of the input.
    fn definition(&self, private: &TokenStream) -> TokenStream {
        let fields = match &self.input {
            Kind::Whole(t) => return quote!(type __StileInput = #t;),
            Kind::Fields(fields) => fields.iter().map(
                |Field {
                     attributes,
                     name,
                     r#type,
                 }| quote!(#(#attributes)* #name: #r#type),
            ),
        };
        let path = |name| LitStr::new(&format!("::stile::__private::{name}"), Span::call_site());
        let (serde, schemars) = (path("serde"), path("schemars"));
        quote! {
            #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
            #[serde(crate = #serde, deny_unknown_fields)]
            #[schemars(crate = #schemars)]
            struct __StileInput { #(#fields),* }
        }
    }

    fn parsed(&self) -> TokenStream {
        match &self.input {
            // Nothing reads the empty input.
            Kind::Fields(fields) if fields.is_empty() => quote!(let _ = __stile_input;),
            _ => TokenStream::new(),
        }
    }

    fn arguments(&self) -> Vec<TokenStream> {
        let mut list = vec![];
        if self.env {
            list.push(quote!(__stile_env));
        }
        match &self.input {
            Kind::Whole(_) => list.push(quote!(::stile::Input(__stile_input))),
            Kind::Fields(fields) => {
                list.extend(fields.iter().map(|f| {
                    let name = &f.name;
                    quote!(__stile_input.#name)
                }));
            }
        }
        list
    }
}

impl Field {
    fn take(argument: &mut PatType) -> Result<Self> {
        let name = match &*argument.pat {
            Pat::Ident(p) if p.by_ref.is_none() && p.subpat.is_none() => p.ident.clone(),
            other => {
                return Err(Error::new(
                    other.span(),
                    "a parameter needs a name: it is that of a field of the input",
                ))
            }
        };
        match &*argument.ty {
            Type::Reference(t) => {
                return Err(Error::new(
                    t.span(),
                    "a parameter owns its value: `String` instead of `&str`, `Vec<T>` instead of `&[T]`",
                ))
            }
            Type::ImplTrait(t) => {
                return Err(Error::new(t.span(), "a parameter needs a type, which has a schema"))
            }
            _ => {}
        }
        let (taken, kept) = argument.attrs.drain(..).partition(|a: &Attribute| {
            ["doc", "serde", "schemars"]
                .iter()
                .any(|name| a.path().is_ident(name))
        });
        argument.attrs = kept;
        Ok(Self {
            attributes: taken,
            name,
            r#type: (*argument.ty).clone(),
        })
    }
}

/// Reports whether a parameter is the env, which it may be at the first position.
fn is_env(argument: &PatType, position: usize) -> Result<bool> {
    let (shared, target) = match &*argument.ty {
        Type::Reference(r) => (r.mutability.is_none(), &*r.elem),
        other => (false, other),
    };
    match last_segment(target) {
        Some(name) if name == "Env" && !shared => Err(Error::new(
            argument.ty.span(),
            "a tool takes its bindings as `&Env`",
        )),
        Some(name) if name == "Env" && position > 0 => Err(Error::new(
            argument.ty.span(),
            "`&Env` is the first parameter",
        )),
        Some(name) => Ok(name == "Env"),
        None => Ok(false),
    }
}

/// The name at the end of a path.
fn last_segment(t: &Type) -> Option<&Ident> {
    match t {
        Type::Path(TypePath {
            qself: None, path, ..
        }) => path.segments.last().map(|s| &s.ident),
        _ => None,
    }
}

/// The type in `Input<T>`.
fn inner(t: &Type) -> Result<Type> {
    if let Type::Path(TypePath { path, .. }) = t {
        if let Some(syn::PathArguments::AngleBracketed(list)) =
            path.segments.last().map(|s| &s.arguments)
        {
            if let (1, Some(syn::GenericArgument::Type(inner))) =
                (list.args.len(), list.args.first())
            {
                return Ok(inner.clone());
            }
        }
    }
    Err(Error::new(
        t.span(),
        "write the type of the input: `Input<T>`",
    ))
}

/// The text of doc comments, without the space at the beginning of each line.
fn doc(attributes: &[Attribute]) -> Result<String> {
    let mut lines = vec![];
    for attribute in attributes {
        match &attribute.meta {
            Meta::NameValue(MetaNameValue { path, value, .. }) if path.is_ident("doc") => {
                let Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) = value
                else {
                    return Err(Error::new(
                        value.span(),
                        "the description of a tool is written out",
                    ));
                };
                let text = text.value();
                lines.push(text.strip_prefix(' ').unwrap_or(&text).to_string());
            }
            _ => {}
        }
    }
    Ok(lines.join("\n").trim().to_string())
}

/// The names that the host takes.
fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}
