use proc_macro2::TokenStream;
use quote::quote;

use crate::expand::tool;

/// What a wrong tool is told.
#[test]
fn refused() {
    let none = TokenStream::new;
    for (options, function, want) in [
        (
            none(),
            quote!(
                fn f() {}
            ),
            "needs a doc comment",
        ),
        (
            none(),
            quote!(
                /** */
                fn f() {}
            ),
            "needs a doc comment",
        ),
        (
            none(),
            quote!(
                #[doc = include_str!("x")]
                fn f() {}
            ),
            "is written out",
        ),
        (
            none(),
            quote!(
                /** d */
                struct S;
            ),
            "expected `fn`",
        ),
        (
            none(),
            quote!(
                /** d */
                async fn f() {}
            ),
            "a tool is not async",
        ),
        (
            none(),
            quote!(
                /** d */
                unsafe fn f() {}
            ),
            "not unsafe",
        ),
        (
            none(),
            quote!(
                /** d */
                extern "C" fn f() {}
            ),
            "without `extern`",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f<T>(x: T) {}
            ),
            "no generic parameters",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f<'a>(env: &'a Env) {}
            ),
            "no generic parameters",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f(&self) {}
            ),
            "without `self`",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f(env: Env) {}
            ),
            "as `&Env`",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f(env: &mut stile::Env) {}
            ),
            "as `&Env`",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f(x: u8, env: &Env) {}
            ),
            "first parameter",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f(x: &str) {}
            ),
            "owns its value",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f(x: impl Fn()) {}
            ),
            "needs a type",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f((a, b): (u8, u8)) {}
            ),
            "needs a name",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f(_: u8) {}
            ),
            "needs a name",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f(x: u8, y: Input<T>) {}
            ),
            "whole input",
        ),
        (
            none(),
            quote!(
                /** d */
                fn f(x: Input) {}
            ),
            "`Input<T>`",
        ),
        (
            none(),
            quote!(
                /** d */
                fn _f() {}
            ),
            "cannot be the name",
        ),
        (
            none(),
            quote!(
                /** d */
                fn ž() {}
            ),
            "cannot be the name",
        ),
        (
            quote!(name = "a b"),
            quote!(
                /** d */
                fn f() {}
            ),
            "cannot be the name",
        ),
        (
            quote!(name),
            quote!(
                /** d */
                fn f() {}
            ),
            "expected `=`",
        ),
        (
            quote!(readonly),
            quote!(
                /** d */
                fn f() {}
            ),
            "`read_only`",
        ),
    ] {
        let text = function.to_string();
        match tool(options, function) {
            Ok(_) => panic!("{text}: accepted, want {want:?}"),
            Err(e) => assert!(e.to_string().contains(want), "{text}: {e}, want {want:?}"),
        }
    }
}

/// Attributes of parameters go to the fields of the input, and the function stays as it is.
#[test]
fn attributes() {
    let expanded = tool(
        quote!(name = "a.b", read_only),
        quote! {
            /// First.
            ///
            ///  Second
            #[cfg(unix)]
            #[inline]
            fn f(env: &Env, /** a word */ #[allow(unused)] #[serde(default)] mut r#type: String) -> io::Result<u8> { x }
        },
    )
    .unwrap()
    .to_string();
    for want in [
        quote!(
            #[cfg(unix)]
            #[inline]
            fn f(env: &Env, #[allow(unused)] mut r#type: String) -> io::Result<u8> {
                x
            }
        ),
        quote!(#[cfg(unix)] const _: () =),
        quote!(struct __StileInput),
        quote!(#[serde(default)] r#type: String),
        quote!(::stile::__private::result(f(
            __stile_env,
            __stile_input.r#type
        ))),
        quote!(name: "a.b", description: "First.\n\n Second",),
        quote!(read_only: true, destructive: false,),
    ] {
        let want = want.to_string();
        assert!(expanded.contains(&want), "no {want}\nin {expanded}");
    }
}
