use crate::{
    blob, browser, clock, code, console, http, kv, random, sandbox, tools, workspace, Env, Error,
};

/// Each pair gets a binding of the call, and adds a handle to an env that the caller made with [`Env::subset`].
macro_rules! bindings {
    ($($get:ident $put:ident $interface:ident $handle:ident,)*) => {
        impl Env {
            $(
                #[doc = concat!("The binding of this name, if it is of the kind `", stringify!($interface), "`.")]
                pub fn $get(&self, name: &str) -> Result<$interface::$handle, Error> {
                    $interface::get(self, name)
                }

                /// Adds a handle under this name, and gives it up.
                pub fn $put(&self, name: &str, handle: $interface::$handle) -> Result<(), Error> {
                    $interface::put(self, name, handle)
                }
            )*
        }
    };
}

bindings! {
    blob put_blob blob Store,
    browser put_browser browser Session,
    clock put_clock clock Clock,
    code put_code code Runner,
    console put_console console Console,
    http put_http http Client,
    kv put_kv kv Bucket,
    random put_random random Random,
    sandbox put_sandbox sandbox Container,
    tools put_tools tools Toolbox,
    workspace put_workspace workspace Directory,
}
