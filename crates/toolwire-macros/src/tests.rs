//! Tests on the tokens of the expansion, without a compiler.

use quote::{ToTokens, quote};
use syn::{
    Expr, File, ImplItem, Item, ItemConst, ItemFn, ItemStruct, Stmt, parse::Parse, parse_quote, parse2,
};

use crate::{Tokens, docs, expand, kind::Kind, service};

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
fn the_function_stays_and_a_type_beside_it_has_the_route() {
    let expansion = Expansion::of(
        Kind::Tool,
        quote!(title = "Sum", read_only, open_world = false, scopes("sum:add", "sum:read")),
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
    let route = expansion.route();
    has(
        &route,
        &[
            r#"::toolwire::__private::tool("add",::toolwire::__private::Function::new("#,
            r#"<i64 as ::toolwire::__private::Parameter<_>>::describe(spec,::toolwire::__private::Named::new(0usize,"a").description("One."))"#,
            r#"::toolwire::__private::Named::new(1usize,"bee").default("#,
            "<i64 as ::toolwire::__private::Parameter<::toolwire::__private::Given>>::take(&cx,values.slot(1usize)).await",
            "<State<App> as ::toolwire::__private::FromContext>::from_context(&cx)",
            "::toolwire::__private::Values::<3usize>::split(&cx,&signature)?",
            "Ok::<_,::toolwire::__private::Rejection>(add(parameter0,parameter1,parameter2).await)",
            r#".title("Sum").description("Adds.").read_only().open_world(false).scopes(["sum:add","sum:read"])"#,
        ],
    );
}

/// Checks that these parts are in an expansion, however it is spaced.
fn has(route: &str, parts: &[&str]) {
    let squeezed = |text: &str| text.replace(char::is_whitespace, "");
    for part in parts {
        assert!(squeezed(route).contains(&squeezed(part)), "{part}\n{route}");
    }
}

#[test]
fn a_function_without_parameters_takes_nothing_apart() {
    let route = Expansion::of(
        Kind::Prompt,
        quote!(),
        quote!(
            async fn hello() -> String {
                body()
            }
        ),
    )
    .route();
    assert!(!route.contains("Values"), "{route}");
    has(&route, &["hello().await"]);
}

#[test]
fn the_uri_decides_between_resource_and_template() {
    let item = quote!(
        async fn config() -> String {
            body()
        }
    );
    let route = Expansion::of(Kind::Resource, quote!("config://app", mime_type = "text/html"), item).route();
    has(&route, &["::toolwire::__private::resource(", r#".name("config").mime_type("text/html")}"#]);

    let item = quote!(
        async fn user(id: u64, cx: Context) -> String {
            body()
        }
    );
    let route = Expansion::of(Kind::Resource, quote!("users://{id}", name = "one user"), item).route();
    has(
        &route,
        &[
            "::toolwire::__private::template(",
            r#"::toolwire::__private::variable::<u64>(&cx,"id")"#,
            "<Context as ::toolwire::__private::FromContext>::from_context(&cx)",
            r#".name("one user")"#,
        ],
    );
}

#[test]
fn attributes_of_serde_and_schemars_go_to_a_field() {
    let item = quote!(
        fn f(
            #[schemars(range(min = 1))]
            #[serde(alias = "y", default = "zero")]
            #[allow(unused)]
            x: u8,
        ) {
        }
    );
    let expansion = Expansion::of(Kind::Tool, quote!(crate = "my::wire"), item);
    let route = expansion.route();
    has(
        &route,
        &[
            r#"struct __Field0 {#[schemars(range(min = 1))] #[serde(alias = "y", default = "zero")] x: u8 }"#,
            r#"spec.field::<__Field0>(0usize,&["y"]);"#,
            "values.field::<__Field0>(&cx).map(|all|all.x)",
            r#"#[serde(crate = "my::wire::__private::serde")]"#,
        ],
    );
    assert_eq!(
        expansion.written(),
        shown(quote!(
            fn f(#[allow(unused)] x: u8) {}
        ))
    );
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
    let route = Expansion::of(Kind::Tool, quote!(description = include_str!("f.md")), item).route();
    has(&route, &[r#".description(include_str!("f.md"))}"#, r#".description("Given.")"#]);
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
                    fn f(#[arg] b: u8) {}
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
    let item = quote!(
        fn f(State(s): State<&'static str>, own: Own<&'static str>, c: Cow<'static, str>) {}
    );
    Expansion::of(Kind::Tool, quote!(), item);
    let said = refusal(
        Kind::Tool,
        quote!(),
        quote!(
            fn f(#[arg] s: Vec<&'static str>) {}
        ),
    );
    assert!(said.starts_with("a tool owns its arguments"), "{said}");
}

#[test]
fn an_impl_keeps_everything_but_our_attributes() {
    let item = quote! {
        impl<T: Show> Library<T> {
            /// Finds.
            #[tool(read_only)]
            async fn find(&self, #[arg(default)] query: String) -> String { body() }
            fn count(&self) -> usize { 3 }
        }
    };
    let tokens = service::expand(quote!(), item.clone());
    let file: File = parse2(tokens).unwrap();
    let [Item::Impl(service), Item::Impl(routes)] = &file.items[..] else { panic!("two impls") };
    has(&shown(service), &["async fn find(&self, query: String)", "fn count(&self) -> usize { 3 }"]);
    has(&shown(routes), &["Routes for Library<T>", "Self::find(&this,parameter0).await"]);

    let tokens = shown(service::expand(quote!(fn = admin), item));
    has(&tokens, &["pub fn admin(self: &::std::sync::Arc<Self>)"]);
}

#[test]
fn calls_become_tasks_where_the_attribute_says_so() {
    let route = |options: Tokens| {
        Expansion::of(
            Kind::Tool,
            options,
            quote!(
                async fn f() {}
            ),
        )
        .route()
    };
    for (options, made) in [
        (quote!(task), "TaskPolicy :: optional ()"),
        (quote!(task_required), "TaskPolicy :: required ()"),
        (
            quote!(task_after = 2),
            "TaskPolicy :: after (:: core :: time :: Duration :: from_millis (2000u64))",
        ),
        (quote!(task_after = 0.5), "Duration :: from_millis (500u64)"),
    ] {
        let route = route(options);
        assert!(route.contains(". task (") && route.contains(made), "{route}");
    }
    assert!(!route(quote!()).contains("task"));
    for (options, why) in [
        (quote!(task, task_required), "exclude each other"),
        (quote!(task = true), "takes no value"),
        (quote!(task_after), "needs a number of seconds"),
        (quote!(task_after = "2"), "needs a number of seconds"),
        (quote!(task_after = 1e9), "at most a day"),
    ] {
        let refused = expand(
            Kind::Tool,
            options,
            quote!(
                async fn f() {}
            ),
        )
        .to_string();
        assert!(refused.contains(why), "{refused}");
    }
}
