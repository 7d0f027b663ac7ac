//! What stands in the parentheses of the attribute.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Error, Expr, ExprLit, Ident, Lit, LitBool, LitStr, Path, Result, Token,
    ext::IdentExt,
    parenthesized,
    parse::{ParseStream, Parser},
    parse_quote,
    token::Paren,
};

use crate::{kind::Kind, uri::Uri};

/// The options of one attribute.
pub(crate) struct Options {
    /// Present exactly for `#[resource]`.
    pub(crate) uri: Option<Uri>,
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) description: Option<Expr>,
    pub(crate) mime_type: Option<LitStr>,
    /// The hints that are just words, such as `read_only`; each is also the name of a setter.
    pub(crate) hints: Vec<Ident>,
    pub(crate) open_world: Option<LitBool>,
    /// What callers must be allowed to do.
    pub(crate) scopes: Vec<LitStr>,
    /// Whether calls become tasks.
    pub(crate) task: Option<TaskOption>,
    pub(crate) krate: Path,
    /// Whether the path of the crate was given here.
    pub(crate) krate_given: bool,
}

/// When a call becomes a task.
pub(crate) enum TaskOption {
    Optional(Ident),
    Required(Ident),
    /// After so many milliseconds.
    After(Ident, u64),
}

impl TaskOption {
    fn word(&self) -> &Ident {
        match self {
            Self::Optional(word) | Self::Required(word) | Self::After(word, _) => word,
        }
    }

    /// The setter of the route.
    pub(crate) fn setter(&self, krate: &Path) -> TokenStream {
        let policy = quote!(#krate::__private::TaskPolicy);
        let made = match self {
            Self::Optional(_) => quote!(#policy::optional()),
            Self::Required(_) => quote!(#policy::required()),
            Self::After(_, millis) => {
                quote!(#policy::after(::core::time::Duration::from_millis(#millis)))
            }
        };
        quote!(.task(#made))
    }
}

/// Where the expansion finds the facade unless told otherwise.
pub(crate) fn default_crate() -> Path {
    parse_quote!(::toolwire)
}

impl Options {
    /// Reads the options of the attribute `kind`.
    pub(crate) fn parse(kind: Kind, tokens: TokenStream) -> Result<Self> {
        let parser = |input: ParseStream<'_>| {
            let mut options = Self::empty();
            if kind == Kind::Resource {
                options.uri = Some(read_uri(input)?);
            }
            options.read(kind, input)?;
            Ok(options)
        };
        parser.parse2(tokens)
    }

    fn empty() -> Self {
        Self {
            uri: None,
            name: None,
            title: None,
            description: None,
            mime_type: None,
            hints: Vec::new(),
            open_world: None,
            scopes: Vec::new(),
            task: None,
            krate: default_crate(),
            krate_given: false,
        }
    }

    fn read(&mut self, kind: Kind, input: ParseStream<'_>) -> Result<()> {
        let mut seen = Vec::new();
        while !input.is_empty() {
            let option = read_word(input, kind.noun(), kind.options())?;
            once(&mut seen, &option)?;
            self.read_one(&option, input)?;
            end_of_option(input)?;
        }
        self.check_hints()
    }

    fn read_one(&mut self, option: &Ident, input: ParseStream<'_>) -> Result<()> {
        match option.to_string().as_str() {
            "name" => self.name = Some(read_name(option, input)?),
            "title" => self.title = Some(read_text(option, input)?),
            "description" => self.description = Some(read_description(option, input)?),
            "mime_type" => self.mime_type = Some(read_text(option, input)?),
            "open_world" => self.open_world = Some(read_bool(option, input)?),
            "scopes" => self.scopes = read_scopes(option, input)?,
            "task" | "task_required" | "task_after" => {
                let task = read_task(option, input)?;
                if let Some(other) = &self.task {
                    let message = format!("`{option}` and `{}` exclude each other", other.word());
                    return Err(Error::new(option.span(), message));
                }
                self.task = Some(task);
            }
            "crate" => {
                self.krate = read_path(option, input)?;
                self.krate_given = true;
            }
            word => {
                if input.peek(Token![=]) {
                    return Err(Error::new(
                        input.span(),
                        format!("`{word}` takes no value: write just `{word}`"),
                    ));
                }
                self.hints.push(option.clone());
            }
        }
        Ok(())
    }

    fn check_hints(&self) -> Result<()> {
        match self.hints.iter().find(|hint| *hint == "destructive") {
            Some(hint) if self.hints.iter().any(|hint| hint == "read_only") => {
                Err(Error::new(hint.span(), "a tool that is `read_only` cannot be `destructive`"))
            }
            _ => Ok(()),
        }
    }
}

fn read_uri(input: ParseStream<'_>) -> Result<Uri> {
    if !input.peek(LitStr) {
        let message = "the URI comes first: `#[resource(\"config://app\")]`, or with variables \
                       `#[resource(\"users://{id}\")]`";
        return Err(Error::new(input.span(), message));
    }
    let uri = Uri::parse(&input.parse()?)?;
    end_of_option(input)?;
    Ok(uri)
}

/// Reads the word that begins an option and checks that it is one of `known`.
pub(crate) fn read_word(input: ParseStream<'_>, attribute: &str, known: &[&str]) -> Result<Ident> {
    let list = || known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    if !input.peek(Ident::peek_any) {
        return Err(Error::new(input.span(), format!("expected an option of `#[{attribute}]`: {}", list())));
    }
    let word = input.call(Ident::parse_any)?;
    if known.iter().any(|known| word == known) {
        return Ok(word);
    }
    let message = format!("`#[{attribute}]` has no option `{word}`; it knows {}", list());
    Err(Error::new(word.span(), message))
}

/// Refuses an option that has been seen already.
pub(crate) fn once(seen: &mut Vec<Ident>, option: &Ident) -> Result<()> {
    if seen.contains(option) {
        return Err(Error::new(option.span(), format!("`{option}` is given twice")));
    }
    seen.push(option.clone());
    Ok(())
}

/// Reads the comma after an option, if there is anything left.
pub(crate) fn end_of_option(input: ParseStream<'_>) -> Result<()> {
    if input.is_empty() {
        return Ok(());
    }
    if !input.peek(Token![,]) {
        return Err(Error::new(input.span(), "expected a comma between the options"));
    }
    input.parse::<Token![,]>().map(drop)
}

/// Reads `= "text"`.
pub(crate) fn read_text(option: &Ident, input: ParseStream<'_>) -> Result<LitStr> {
    let wanted = || format!("`{option}` needs a text: `{option} = \"…\"`");
    if !input.peek(Token![=]) {
        return Err(Error::new(option.span(), wanted()));
    }
    input.parse::<Token![=]>()?;
    if !input.peek(LitStr) {
        return Err(Error::new(input.span(), wanted()));
    }
    input.parse()
}

/// Reads `= "text"` that is not empty.
pub(crate) fn read_name(option: &Ident, input: ParseStream<'_>) -> Result<LitStr> {
    let name = read_text(option, input)?;
    if name.value().is_empty() {
        return Err(Error::new(name.span(), format!("`{option}` cannot be empty")));
    }
    Ok(name)
}

/// Reads `= "text"` or a macro that makes one, such as `= include_str!("…")`.
pub(crate) fn read_description(option: &Ident, input: ParseStream<'_>) -> Result<Expr> {
    let wanted =
        || format!("`{option}` needs a text: `{option} = \"…\"` or `{option} = include_str!(\"…\")`");
    if !input.peek(Token![=]) {
        return Err(Error::new(option.span(), wanted()));
    }
    input.parse::<Token![=]>()?;
    if input.is_empty() {
        return Err(Error::new(input.span(), wanted()));
    }
    let value: Expr = input.parse()?;
    match &value {
        Expr::Macro(_) | Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => Ok(value),
        _ => Err(Error::new_spanned(&value, wanted())),
    }
}

/// Reads `("scope", "another")`: one or more scopes, as RFC 6749 writes them.
fn read_scopes(option: &Ident, input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    let wanted =
        || format!("`{option}` needs one or more texts: `{option}(\"files:read\", \"files:write\")`");
    if !input.peek(Paren) {
        return Err(Error::new(option.span(), wanted()));
    }
    let list;
    parenthesized!(list in input);
    let mut scopes = Vec::new();
    while !list.is_empty() {
        if !list.peek(LitStr) {
            return Err(Error::new(list.span(), wanted()));
        }
        scopes.push(checked_scope(list.parse()?)?);
        end_of_option(&list)?;
    }
    if scopes.is_empty() { Err(Error::new(option.span(), wanted())) } else { Ok(scopes) }
}

fn checked_scope(scope: LitStr) -> Result<LitStr> {
    let text = scope.value();
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if (1..=128).contains(&text.len()) && text.bytes().all(allowed) {
        return Ok(scope);
    }
    let message =
        "a scope is up to 128 visible ASCII characters without spaces, quotation marks and backslashes";
    Err(Error::new(scope.span(), message))
}

/// Reads `task`, `task_required`, or `task_after` with a number of seconds.
fn read_task(option: &Ident, input: ParseStream<'_>) -> Result<TaskOption> {
    if option != "task_after" {
        if input.peek(Token![=]) {
            let message = format!(
                "`{option}` takes no value: write just `{option}`, or `task_after = 2` for work that becomes a task \
                 after two seconds"
            );
            return Err(Error::new(input.span(), message));
        }
        let task = if option == "task" { TaskOption::Optional } else { TaskOption::Required };
        return Ok(task(option.clone()));
    }
    let wanted = || format!("`{option}` needs a number of seconds: `{option} = 2` or `{option} = 0.5`");
    if !input.peek(Token![=]) {
        return Err(Error::new(option.span(), wanted()));
    }
    input.parse::<Token![=]>()?;
    let seconds = match input.parse::<Lit>() {
        Ok(Lit::Int(number)) => number.base10_parse::<f64>()?,
        Ok(Lit::Float(number)) => number.base10_parse::<f64>()?,
        _ => return Err(Error::new(input.span(), wanted())),
    };
    // A day is longer than any request lives.
    if !(0.0..=86_400.0).contains(&seconds) {
        return Err(Error::new(option.span(), format!("`{option}` is at most a day, in seconds")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range above")]
    let millis = (seconds * 1000.0).round() as u64;
    Ok(TaskOption::After(option.clone(), millis))
}

fn read_bool(option: &Ident, input: ParseStream<'_>) -> Result<LitBool> {
    let wanted = || format!("`{option}` needs a value: `{option} = true` or `{option} = false`");
    if !input.peek(Token![=]) {
        return Err(Error::new(option.span(), wanted()));
    }
    input.parse::<Token![=]>()?;
    if !input.peek(LitBool) {
        return Err(Error::new(input.span(), wanted()));
    }
    input.parse()
}

pub(crate) fn read_path(option: &Ident, input: ParseStream<'_>) -> Result<Path> {
    let text = read_text(option, input)?;
    text.parse_with(Path::parse_mod_style).map_err(|_| {
        Error::new(text.span(), "`crate` needs the path of the toolwire crate: `crate = \"::my::toolwire\"`")
    })
}
