//! Tests on the tokens of the expansion, without a compiler.

use quote::{ToTokens, quote};
use syn::{
    Expr, File, ImplItem, Item, ItemConst, ItemFn, ItemStruct, Stmt, parse::Parse, parse_quote, parse2,
};

use crate::{Tokens, docs, expand, kind::Kind};

/// The items of an expansion, on both levels.
struct Expansion {
    function: ItemFn,
    carrier: ItemStruct,
    inside: Vec<Item>,
}

impl Expansion {
    fn of(kind: Kind, options: Tokens, item: Tokens) -> Self {
        let file: File = parse2(expand(kind, options, item)).unwrap();
        let [Item::Fn(function), Item::Struct(carrier), Item::Const(ItemConst { expr, .. })] =
            &file.items[..]
        else {
            panic!("a function, a struct and a const, not {}", file.to_token_stream());
        };
        let Expr::Block(block) = &**expr else { panic!("a block") };
        let inside = block.block.stmts.iter().map(|stmt| match stmt {
            Stmt::Item(item) => item.clone(),
            _ => panic!("only items"),
        });
        Self { function: function.clone(), carrier: carrier.clone(), inside: inside.collect() }
    }

    /// The function that was annotated, without a comma after the last parameter and what we allow it.
    fn written(&self) -> String {
        let mut function = self.function.clone();
        function.sig.inputs.pop_punct();
        assert!(shown(function.attrs.remove(0)).contains("clippy"));
        shown(function)
    }

    /// The function of this name inside.
    fn function(&self, name: &str) -> String {
        let found = self.inside.iter().find_map(|item| match item {
            Item::Fn(function) if function.sig.ident == name => Some(function),
            _ => None,
        });
        shown(found.unwrap())
    }

    fn arguments(&self) -> Option<&ItemStruct> {
        self.inside.iter().find_map(|item| match item {
            Item::Struct(item) => Some(item),
            _ => None,
        })
    }

    /// The call that makes the route.
    fn route(&self) -> String {
        let found = self.inside.iter().find_map(|item| match item {
            Item::Impl(item) if item.trait_.is_none() => Some(item),
            _ => None,
        });
        let [ImplItem::Fn(route)] = &found.unwrap().items[..] else { panic!("one function") };
        shown(route.block.stmts.last().unwrap())
    }
}

/// The tokens as `syn` writes them, so that commas at the end make no difference.
fn parsed<T: Parse + ToTokens>(tokens: Tokens) -> String {
    shown(parse2::<T>(tokens).unwrap())
}

fn shown(tokens: impl ToTokens) -> String {
    tokens.to_token_stream().to_string()
}

/// What the compiler is told.
fn refusal(kind: Kind, options: Tokens, item: Tokens) -> String {
    let text = expand(kind, options, item).to_string();
    let (_, message) = text.split_once("compile_error ! { \"").unwrap();
    message.split_once("\" }").unwrap().0.replace("\\\"", "\"")
}

#[test]
fn a_tool_is_the_struct_and_the_call_somebody_would_have_written() {
    let expansion = Expansion::of(
        Kind::Tool,
        quote!(title = "Sum", read_only, open_world = false),
        quote! {
            /// Adds.
            #[inline]
            pub async fn add(
                /// One.
                a: i64,
                #[arg(rename = "bee", default = 3)] mut b: i64,
                State(app): State<App>,
            ) -> String { body() }
        },
    );
    assert!(shown(&expansion.carrier).ends_with("pub struct add { }"), "{}", shown(&expansion.carrier));
    assert_eq!(
        expansion.written(),
        parsed::<ItemFn>(quote! {
            /// Adds.
            #[inline]
            pub async fn add(a: i64, mut b: i64, State(app): State<App>) -> String { body() }
        })
    );
    assert_eq!(
        expansion.function("__default_b"),
        shown(quote!(
            fn __default_b() -> i64 {
                3
            }
        ))
    );
    assert_eq!(
        shown(&expansion.arguments().unwrap().fields),
        shown(quote! {{
            /// One.
            a: i64,
            #[serde(rename = "bee")]
            #[serde(default = "__default_b")]
            b: i64,
        }})
    );
    let parts = quote! {
        ::toolwire::__private::tool::<_, (::toolwire::__private::Args<__Arguments>, State<App>,)>(
            "add",
            |::toolwire::__private::Args(arguments): ::toolwire::__private::Args<__Arguments>, parameter2: State<App>|
                add(arguments.a, arguments.b, parameter2)
        ).title("Sum").description("Adds.").read_only().open_world(false)
    };
    assert_eq!(expansion.route(), parsed::<Expr>(parts));
}

#[test]
fn a_function_without_arguments_needs_no_struct() {
    let expansion = Expansion::of(
        Kind::Prompt,
        quote!(),
        quote!(
            fn hello(cx: Context) -> String {
                body()
            }
        ),
    );
    assert!(expansion.arguments().is_none());
    let route = quote! {
        ::toolwire::__private::prompt::<_, (Context,)>(
            "hello",
            |parameter0: Context| async move { hello(parameter0) }
        )
    };
    assert_eq!(expansion.route(), parsed::<Expr>(route));
}

#[test]
fn the_uri_decides_between_resource_and_template() {
    let item = quote!(
        async fn config() -> String {
            body()
        }
    );
    let route = Expansion::of(Kind::Resource, quote!("config://app", mime_type = "text/html"), item).route();
    let expected = quote! {
        ::toolwire::__private::resource::<_, ()>("config://app", || config()).name("config").mime_type("text/html")
    };
    assert_eq!(route, parsed::<Expr>(expected));

    let item = quote!(
        async fn user(id: u64) -> String {
            body()
        }
    );
    let expansion = Expansion::of(Kind::Resource, quote!("users://{id}", name = "one user"), item);
    let route = expansion.route();
    assert!(route.starts_with(&shown(quote!(::toolwire::__private::template::<_, ))), "{route}");
    assert!(route.contains(&shown(quote!(::toolwire::__private::Uri(arguments)))), "{route}");
    assert!(route.ends_with(&shown(quote!(.name("one user")))), "{route}");
    assert!(!shown(expansion.arguments()).contains("JsonSchema"), "variables have no schema");
}

#[test]
fn extractors_are_known_by_their_name_or_by_an_attribute() {
    for ty in
        ["Args<T>", "toolwire::Context", "Option<State<App>>", "Result<Extension<P>, Rejection>", "(Meta)"]
    {
        let ty: syn::Type = syn::parse_str(ty).unwrap();
        let expansion = Expansion::of(Kind::Tool, quote!(), quote!(fn f(x: #ty) {}));
        assert!(expansion.arguments().is_none(), "{}", shown(ty));
    }
    for ty in ["String", "Option<String>", "Vec<Context>", "Contexts"] {
        let ty: syn::Type = syn::parse_str(ty).unwrap();
        let expansion = Expansion::of(Kind::Tool, quote!(), quote!(fn f(x: #ty) {}));
        assert!(expansion.arguments().is_some(), "{}", shown(ty));
        let expansion = Expansion::of(Kind::Tool, quote!(), quote!(fn f(#[extract] x: #ty) {}));
        assert!(expansion.arguments().is_none(), "{}", shown(ty));
    }
    let forced = Expansion::of(
        Kind::Tool,
        quote!(),
        quote!(
            fn f(#[arg] meta: Meta) {}
        ),
    );
    assert!(forced.arguments().is_some());
}

#[test]
fn attributes_of_serde_and_schemars_go_to_the_field() {
    let item = quote!(
        fn f(
            #[schemars(range(min = 1))]
            #[serde(alias = "y")]
            #[allow(unused)]
            x: u8,
        ) {
        }
    );
    let expansion = Expansion::of(Kind::Tool, quote!(crate = "my::wire"), item);
    let fields = &expansion.arguments().unwrap().fields;
    assert_eq!(shown(fields), shown(quote!({ #[schemars(range(min = 1))] #[serde(alias = "y")] x: u8, })));
    assert_eq!(
        expansion.written(),
        shown(quote!(
            fn f(#[allow(unused)] x: u8) {}
        ))
    );
    assert!(shown(expansion.arguments()).contains("crate = \"my::wire::__private::serde\""));
}

#[test]
fn a_description_keeps_its_lines() {
    let function: ItemFn = parse_quote! {
        /// First line,
        /// second line.
        ///
        /// - a list
        ///   that goes on
        ///
        #[doc(hidden)]
        #[doc = "As an attribute."]
        fn f() {}
    };
    let text = docs::description(&function.attrs).unwrap();
    let expected = "First line,\nsecond line.\n\n- a list\n  that goes on\n\nAs an attribute.";
    assert_eq!(shown(text), shown(expected));

    let function: ItemFn = parse_quote!(
        #[doc = ""]
        fn f() {}
    );
    assert!(docs::description(&function.attrs).unwrap().is_none());

    let function: ItemFn = parse_quote!(
        #[doc = " See:"]
        #[doc = include_str!("x.md")]
        fn f() {}
    );
    let text = docs::description(&function.attrs).unwrap();
    assert_eq!(shown(text), shown(quote!(::core::concat!("See:", "\n", include_str!("x.md"), "\n").trim())));
}

#[test]
fn the_given_description_wins() {
    let item = quote! {
        /// From the comment.
        fn f(
            /// From the comment.
            #[arg(description = "Given.")]
            x: u8,
        ) {}
    };
    let expansion = Expansion::of(Kind::Tool, quote!(description = include_str!("f.md")), item);
    assert!(expansion.route().ends_with(&shown(quote!(.description(include_str!("f.md"))))));
    assert_eq!(shown(&expansion.arguments().unwrap().fields), shown(quote!({ #[doc = "Given."] x: u8, })));
}

#[test]
fn a_refused_function_still_has_its_name() {
    let tokens = expand(
        Kind::Resource,
        quote!(),
        quote!(
            pub fn config() {}
        ),
    );
    let file: File = parse2(tokens).unwrap();
    assert!(matches!(&file.items[1], Item::Fn(function) if function.sig.ident == "config"));
    assert!(matches!(&file.items[2], Item::Struct(carrier) if carrier.ident == "config"));
    let inside = shown(&file.items[3]);
    assert!(inside.contains("ResourceRoute"), "{inside}");
    // In an `impl` nothing but the error can stand.
    let file: File = parse2(expand(
        Kind::Tool,
        quote!(),
        quote!(
            fn f(&self) {}
        ),
    ))
    .unwrap();
    assert_eq!(file.items.len(), 1);
}

#[test]
fn refusals_say_what_to_do() {
    let tool = |options: Tokens, item: Tokens| refusal(Kind::Tool, options, item);
    for (said, expected) in [
        (
            tool(
                quote!(),
                quote!(
                    struct S;
                ),
            ),
            "`#[tool]` goes on a function with a body",
        ),
        (
            tool(
                quote!(color),
                quote!(
                    fn f() {}
                ),
            ),
            "`#[tool]` has no option `color`; it knows `name`, `title`",
        ),
        (
            tool(
                quote!(),
                quote!(
                    fn f<T>(x: T) {}
                ),
            ),
            "a tool cannot be generic",
        ),
        (
            tool(
                quote!(),
                quote!(
                    fn f(x: &[u8]) {}
                ),
            ),
            "a tool owns its arguments: take `Vec<u8>`",
        ),
        (
            tool(
                quote!(),
                quote!(
                    fn f(x: Box<dyn Fn(&str)>) {}
                ),
            ),
            "a tool owns its arguments",
        ),
        (
            tool(
                quote!(),
                quote!(
                    fn f(x: Args<T>, y: u8) {}
                ),
            ),
            "`Args<T>` already takes all the arguments",
        ),
        (
            tool(
                quote!(),
                quote!(
                    fn f() -> Option<impl Display> {}
                ),
            ),
            "the return type of a tool needs a name",
        ),
        (
            refusal(
                Kind::Resource,
                quote!(),
                quote!(
                    fn f() {}
                ),
            ),
            "the URI comes first: `#[resource(\"config://app\")]`",
        ),
        (
            refusal(
                Kind::Resource,
                quote!("x://{a}"),
                quote!(
                    fn f(b: u8) {}
                ),
            ),
            "`b` is no variable of the URI",
        ),
        (
            refusal(
                Kind::Resource,
                quote!("x://{a}"),
                quote!(
                    fn f() {}
                ),
            ),
            "the URI has the variable `a`",
        ),
    ] {
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn what_lives_for_ever_can_be_extracted() {
    let expansion = Expansion::of(
        Kind::Tool,
        quote!(),
        quote!(
            fn f(State(s): State<&'static str>, c: Cow<'static, str>) {}
        ),
    );
    assert!(expansion.arguments().is_some());
    let said = refusal(
        Kind::Tool,
        quote!(),
        quote!(
            fn f(s: Vec<&'static str>) {}
        ),
    );
    assert!(said.starts_with("a tool owns its arguments"), "{said}");
}
