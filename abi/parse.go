package abi

import (
	"cmp"
	"regexp"
	"strings"
)

// Limits of the parser, so that a hostile text costs little. They are far above the needs of interfaces that people write.
const (
	// maxText is the size of one text in bytes.
	maxText = 1 << 20
	// maxName is the length of one name in bytes.
	maxName = 128
	// maxDepth is how deep types may nest, including through named types.
	maxDepth = 100
	// maxParts is how many parts a type or a function signature may have: types, fields, cases and labels, counted with named types
	// expanded.
	maxParts = 10_000
	// maxInterfaceParts is the same for all types and functions of one interface.
	maxInterfaceParts = 100_000
	// maxItems is how many interfaces and worlds all texts together may have. It is also how many functions and types a world may
	// have.
	maxItems = 1_000
	// maxIncluded is how many imports and exports all worlds together may include. It also bounds the types and functions, with
	// their members, that they copy under other names.
	maxIncluded = 100_000
	// maxLabels is how many labels flags may have; the component model allows no more.
	maxLabels = 32
)

// The syntax tree, as written: names are not resolved yet.
type (
	ident struct {
		name string
		at   position
	}
	// path names an interface or a world. Package is empty for a name in the same package.
	path struct {
		pkg  packageName
		name ident
	}
	packageName struct{ namespace, name, version string }

	// textTree is one text: the items of the package that its `package` line names, and the packages in braces. If a text lacks that
	// line, main has no name.
	textTree struct {
		main   *packageTree
		nested []*packageTree
	}
	packageTree struct {
		name       packageName
		at         position
		doc        string
		aliases    []aliasTree
		interfaces []*interfaceTree
		worlds     []*worldTree
	}
	// aliasTree is a `use` outside interfaces and worlds. It applies only to its text.
	aliasTree struct {
		gate
		as     ident
		target path
	}
	// gate says in which version of its package an item appears, or with which feature. Both are empty for an item that is always
	// there.
	gate struct {
		gatedAt        position
		since, feature string
	}
	// bodyTree is what interfaces and worlds can both declare.
	bodyTree struct {
		uses  []useTree
		types []*typeDeclTree
		// funcs includes the functions of resources, in the order of the text.
		funcs []*funcTree
	}
	interfaceTree struct {
		ident
		gate
		doc string
		bodyTree
	}
	worldTree struct {
		ident
		gate
		doc string
		bodyTree
		includes []includeTree
		imports  []externTree
		exports  []externTree
	}
	useTree struct {
		gate
		from  path
		names []renameTree
	}
	includeTree struct {
		gate
		from  path
		names []renameTree
	}
	renameTree struct{ name, as ident }
	// externTree is an import or export: a function or an interface declared here, or an interface of a package.
	externTree struct {
		gate
		iface  path
		fn     *funcTree
		inline *interfaceTree
	}
	// typeDeclTree declares a record, variant, enum or flags with members, or a resource. Kind 0 declares an alias.
	typeDeclTree struct {
		ident
		gate
		doc      string
		kind     Kind
		resource bool
		members  []memberTree
		alias    *typeTree
	}
	// memberTree is a field, case, label or parameter. A case may have no type, and a label never has one. Only fields and cases
	// keep their doc.
	memberTree struct {
		ident
		doc string
		typ *typeTree
	}
	funcTree struct {
		ident
		gate
		doc string
		// resource is the name of the resource that the form belongs to.
		resource string
		form     funcForm
		params   []memberTree
		result   *typeTree
	}
	// typeTree is a type expression. Kind 0, KindOwn and KindBorrow refer to a declared type by name.
	typeTree struct {
		kind Kind
		name ident
		at   position
		// elems are the element of a list or option, the elements of a tuple, or both types of a result, which may be nil.
		elems []*typeTree
	}
)

type funcForm uint8

const (
	formFree funcForm = iota
	formMethod
	formStatic
	formConstructor
)

// parser reads one text by recursive descent. It keeps the first error in err and returns no tokens after it, so every loop ends.
type parser struct {
	lexer lexer
	token token
	err   error
}

func parseText(s *source) (*textTree, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	p := &parser{lexer: newLexer(s)}
	p.advance()
	tree := p.text()
	return tree, p.err
}

func (p *parser) advance() {
	if p.err != nil {
		return
	}
	p.token = p.lexer.next()
	if p.token.kind == tokenBad {
		p.failAt(p.token.at, "%s", p.token.text)
	}
}

func (p *parser) failAt(at position, format string, args ...any) {
	if p.err == nil {
		p.err = at.errorf(format, args...)
		p.token = token{at: at}
	}
}

func (p *parser) unexpected(wanted string) {
	p.failAt(p.token.at, "expected %s, found %v", wanted, p.token)
}

// is reports whether the next token is this keyword or punctuation mark.
func (p *parser) is(text string) bool {
	return p.token.text == text && (p.token.kind == tokenKeyword || p.token.kind == tokenMark)
}

func (p *parser) accept(text string) bool {
	if !p.is(text) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.unexpected("`" + text + "`")
	}
}

// until reports whether items follow before the closing mark. If none does, it consumes the mark.
func (p *parser) until(closing string) bool {
	if p.token.kind == tokenEnd {
		p.unexpected("`" + closing + "`")
	}
	return p.err == nil && !p.accept(closing)
}

// block reads items in braces, each after its doc comment and gate.
func (p *parser) block(item func(doc string, g gate)) {
	p.expect("{")
	for p.until("}") {
		doc := p.token.doc
		item(doc, p.gate())
	}
}

// list reads items between commas. The last comma is optional.
func (p *parser) list(opening, closing string, item func()) {
	p.expect(opening)
	for p.until(closing) {
		item()
		if !p.accept(",") {
			p.expect(closing)
			return
		}
	}
}

func (p *parser) ident() ident {
	id := ident{p.token.text, p.token.at}
	switch {
	case p.token.kind == tokenKeyword:
		p.failAt(id.at, "`%s` is a keyword; the name is written `%%%s`", id.name, id.name)
	case p.token.kind != tokenName:
		p.unexpected("a name")
	case len(id.name) > maxName:
		p.failAt(id.at, "the name has %d characters; at most %d are allowed", len(id.name), maxName)
	case !isKebab(id.name):
		p.failAt(id.at, "`%s` is not a name; a name has words of letters and digits, all lower or all upper case, the first starting with a letter, with one `-` between", id.name)
	default:
		p.advance()
	}
	return id
}

func isKebab(name string) bool {
	for word := range strings.SplitSeq(name, "-") {
		if word == "" || strings.Contains(word, "_") || strings.ToLower(word) != word && strings.ToUpper(word) != word {
			return false
		}
	}
	return name[0] < '0' || name[0] > '9'
}

var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// IsVersion reports whether text is a version as semver.org defines it.
func IsVersion(text string) bool { return semver.MatchString(text) }

// version reads a version after the current token. Versions do not consist of tokens. A `.` at the end is not part of the version,
// as in `@1.0.0.{a}`.
func (p *parser) version() string {
	if p.err != nil {
		return ""
	}
	if _, problem := p.lexer.space(); problem != "" {
		p.advance()
		return ""
	}
	at := position{p.lexer.source, p.lexer.offset}
	rest := at.source.text[at.offset:]
	end := strings.IndexFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '.' && r != '-' && r != '+'
	})
	if end < 0 {
		end = len(rest)
	}
	version := strings.TrimRight(rest[:end], ".")
	switch {
	case len(version) > maxName:
		p.failAt(at, "the version has %d characters; at most %d are allowed", len(version), maxName)
	case !IsVersion(version):
		p.failAt(at, "expected a version such as 1.2.3, found `%s`", version)
	}
	p.lexer.offset += len(version)
	p.advance()
	return version
}

// compareVersions orders two versions as semver.org does, ignoring what follows `+`.
func compareVersions(a, b string) int {
	split := func(version string) (numbers, pre []string) {
		version, _, _ = strings.Cut(version, "+")
		core, rest, found := strings.Cut(version, "-")
		if found {
			pre = strings.Split(rest, ".")
		}
		return strings.Split(core, "."), pre
	}
	numbersA, preA := split(a)
	numbersB, preB := split(b)
	for i, n := range numbersA {
		if c := compareIdentifiers(n, numbersB[i]); c != 0 {
			return c
		}
	}
	if len(preA) == 0 || len(preB) == 0 {
		return cmp.Compare(len(preB), len(preA)) // a version comes after its pre-releases
	}
	for i := range min(len(preA), len(preB)) {
		if c := compareIdentifiers(preA[i], preB[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(preA), len(preB))
}

// compareIdentifiers orders two parts of a version: numbers by value, and before words.
func compareIdentifiers(a, b string) int {
	isNumber := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	switch numberA, numberB := isNumber(a), isNumber(b); {
	case numberA && numberB:
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	case numberA:
		return -1
	case numberB:
		return 1
	default:
		return strings.Compare(a, b)
	}
}

// gate reads `@since(...)`, `@unstable(...)` and `@deprecated(...)`.
func (p *parser) gate() gate {
	var g gate
	deprecated := position{}
	for p.is("@") {
		p.advance()
		name := p.ident()
		if p.err == nil && name.name != "since" && name.name != "deprecated" && name.name != "unstable" {
			p.failAt(name.at, "`@%s` is not supported; expected `@since`, `@deprecated` or `@unstable`", name.name)
		}
		p.expect("(")
		key := p.ident()
		twice := false
		switch {
		case name.name != "unstable" && key.name == "version":
			if !p.is("=") {
				p.unexpected("`=`")
			}
			version := p.version()
			if name.name == "deprecated" {
				twice, deprecated = deprecated.source != nil, name.at
			} else {
				twice, g.gatedAt, g.since = g.since != "", name.at, version
			}
		case name.name == "unstable" && key.name == "feature":
			p.expect("=")
			twice, g.gatedAt, g.feature = g.feature != "", name.at, p.ident().name
		default:
			p.failAt(name.at, "expected `@since(version = ...)`, `@deprecated(version = ...)` or `@unstable(feature = ...)`")
		}
		if twice {
			p.failAt(name.at, "`@%s` is here twice; remove one", name.name)
		}
		p.expect(")")
	}
	switch {
	case g.since != "" && g.feature != "":
		p.failAt(g.gatedAt, "an item has `@since` or `@unstable`, not both; remove one")
	case deprecated.source != nil && g.gatedAt.source == nil:
		p.failAt(deprecated, "`@deprecated` needs `@since` or `@unstable` beside it")
	}
	return g
}

func (p *parser) text() *textTree {
	tree := &textTree{main: &packageTree{at: p.token.at}}
	if p.is("package") {
		pkg := p.packageName()
		if !p.is("{") {
			p.expect(";")
			tree.main = pkg
		} else {
			tree.nested = append(tree.nested, p.nested(pkg))
		}
	}
	for p.err == nil && p.token.kind != tokenEnd {
		if p.is("package") {
			pkg := p.packageName()
			if p.is(";") {
				p.failAt(pkg.at, "a text has one `package` line, at its start; other packages are written `package namespace:name { ... }`")
			}
			tree.nested = append(tree.nested, p.nested(pkg))
			continue
		}
		doc := p.token.doc
		p.packageItem(tree.main, doc, p.gate())
	}
	return tree
}

// packageName reads `package namespace:name@1.2.3`.
func (p *parser) packageName() *packageTree {
	tree := &packageTree{at: p.token.at, doc: p.token.doc}
	p.advance()
	tree.name.namespace = p.ident().name
	p.expect(":")
	tree.name.name = p.ident().name
	if p.is("@") {
		tree.name.version = p.version()
	}
	return tree
}

// nested reads a package in braces.
func (p *parser) nested(pkg *packageTree) *packageTree {
	p.block(func(doc string, g gate) {
		if p.is("package") {
			p.failAt(p.token.at, "expected `interface`, `world` or `use`: a package in braces must be outside of other packages")
			return
		}
		p.packageItem(pkg, doc, g)
	})
	return pkg
}

func (p *parser) packageItem(pkg *packageTree, doc string, g gate) {
	switch {
	case p.accept("interface"):
		tree := &interfaceTree{ident: p.ident(), gate: g, doc: doc}
		p.interfaceBody(tree)
		pkg.interfaces = append(pkg.interfaces, tree)
	case p.accept("world"):
		tree := &worldTree{ident: p.ident(), gate: g, doc: doc}
		p.worldBody(tree)
		pkg.worlds = append(pkg.worlds, tree)
	case p.accept("use"):
		alias := aliasTree{gate: g, target: p.path()}
		alias.as = alias.target.name
		if p.accept("as") {
			alias.as = p.ident()
		}
		p.expect(";")
		pkg.aliases = append(pkg.aliases, alias)
	default:
		p.unexpected("`interface`, `world` or `use`")
	}
}

// path reads `name` or `namespace:package/name@version`.
func (p *parser) path() path { return p.pathAfter(p.ident()) }

func (p *parser) pathAfter(first ident) path {
	if !p.accept(":") {
		return path{name: first}
	}
	result := path{pkg: packageName{namespace: first.name, name: p.ident().name}}
	p.expect("/")
	result.name = p.ident()
	if p.is("@") {
		result.pkg.version = p.version()
	}
	return result
}

func (p *parser) use(g gate) useTree {
	use := useTree{gate: g, from: p.path()}
	p.expect(".")
	p.list("{", "}", func() {
		name := p.ident()
		as := name
		if p.accept("as") {
			as = p.ident()
		}
		use.names = append(use.names, renameTree{name, as})
	})
	p.expect(";")
	return use
}

func (p *parser) interfaceBody(tree *interfaceTree) {
	p.block(func(doc string, g gate) {
		switch {
		case p.bodyItem(&tree.bodyTree, doc, g):
		case p.token.kind == tokenName:
			fn := &funcTree{ident: p.ident(), gate: g, doc: doc}
			p.expect(":")
			p.function(fn)
			tree.funcs = append(tree.funcs, fn)
		case p.token.kind == tokenKeyword:
			p.ident() // its error says how to write a function with that name
		default:
			p.unexpected("a function, a type, a resource or `use`")
		}
	})
}

// bodyItem reads the items that interfaces and worlds have in common. It reports false if none starts here.
func (p *parser) bodyItem(body *bodyTree, doc string, g gate) bool {
	switch {
	case p.accept("use"):
		body.uses = append(body.uses, p.use(g))
	case p.accept("resource"):
		body.types = append(body.types, p.resource(body, doc, g))
	default:
		decl := p.typeDecl(doc, g)
		if decl == nil {
			return false
		}
		body.types = append(body.types, decl)
	}
	return true
}

// typeDecl reads the declaration of a type other than a resource. It returns nil if none starts here.
func (p *parser) typeDecl(doc string, g gate) *typeDeclTree {
	decl := &typeDeclTree{doc: doc, gate: g}
	switch {
	case p.accept("type"):
		decl.ident = p.ident()
		p.expect("=")
		decl.alias = p.typ(1)
		p.expect(";")
		return decl
	case p.accept("record"):
		decl.kind = KindRecord
	case p.accept("variant"):
		decl.kind = KindVariant
	case p.accept("enum"):
		decl.kind = KindEnum
	case p.accept("flags"):
		decl.kind = KindFlags
	default:
		return nil
	}
	decl.ident = p.ident()
	p.list("{", "}", func() {
		member := memberTree{doc: p.token.doc}
		member.ident = p.ident()
		switch {
		case decl.kind == KindRecord:
			p.expect(":")
			member.typ = p.typ(1)
		case decl.kind == KindVariant && p.accept("("):
			member.typ = p.typ(1)
			p.expect(")")
		}
		decl.members = append(decl.members, member)
	})
	switch {
	case p.err != nil:
	case len(decl.members) == 0:
		p.failAt(decl.at, "`%s` is empty; the component model has no empty types", decl.name)
	case decl.kind == KindFlags && len(decl.members) > maxLabels:
		p.failAt(decl.at, "the flags `%s` have %d labels; at most %d are allowed", decl.name, len(decl.members), maxLabels)
	}
	return decl
}

func (p *parser) resource(body *bodyTree, doc string, g gate) *typeDeclTree {
	decl := &typeDeclTree{doc: doc, gate: g, resource: true, ident: p.ident()}
	if p.accept(";") {
		return decl
	}
	p.block(func(doc string, g gate) {
		fn := &funcTree{doc: doc, gate: g, resource: decl.name}
		if at := p.token.at; p.accept("constructor") {
			fn.form, fn.ident = formConstructor, ident{"constructor", at}
			p.signature(fn)
		} else {
			fn.form, fn.ident = formMethod, p.ident()
			p.expect(":")
			if p.accept("static") {
				fn.form = formStatic
			}
			p.function(fn)
		}
		body.funcs = append(body.funcs, fn)
	})
	return decl
}

// function reads `func(...) -> ...;`.
func (p *parser) function(fn *funcTree) {
	switch {
	case p.is("async"):
		p.failAt(p.token.at, "`async` functions are not supported, because they came after WIT 0.2; return a resource that a caller can poll")
	case p.token.kind == tokenName && (p.token.text == "get" || p.token.text == "set"):
		p.failAt(p.token.at, "properties with `get` and `set` are not supported, because they are not part of WIT 0.2; write `func`")
	}
	p.expect("func")
	p.signature(fn)
}

func (p *parser) signature(fn *funcTree) {
	p.list("(", ")", func() {
		param := memberTree{ident: p.ident()}
		p.expect(":")
		param.typ = p.typ(1)
		fn.params = append(fn.params, param)
	})
	if p.accept("->") {
		if p.is("(") {
			p.failAt(p.token.at, "named results are not supported; return a record or a tuple")
		}
		fn.result = p.typ(1)
	}
	p.expect(";")
}

// typ reads a type at a depth that counts from 1.
func (p *parser) typ(depth int) *typeTree {
	tree := &typeTree{at: p.token.at}
	if depth > maxDepth {
		p.failAt(tree.at, "types nest more than %d deep", maxDepth)
		return tree
	}
	if p.token.kind == tokenName {
		tree.name = p.ident()
		return tree
	}
	if p.token.kind != tokenKeyword {
		p.unexpected("a type")
		return tree
	}
	for kind := KindBool; kind <= KindString; kind++ {
		if p.accept(kind.String()) {
			tree.kind = kind
			return tree
		}
	}
	elem := func() { tree.elems = append(tree.elems, p.typ(depth+1)) }
	switch {
	case p.accept("list"):
		tree.kind = KindList
		p.expect("<")
		elem()
		if p.is(",") {
			p.failAt(p.token.at, "lists of fixed length are not supported, because they are not part of WIT 0.2; use a list or a tuple")
		}
		p.expect(">")
	case p.accept("option"):
		tree.kind = KindOption
		p.expect("<")
		elem()
		p.expect(">")
	case p.accept("tuple"):
		tree.kind = KindTuple
		p.list("<", ">", elem)
		if len(tree.elems) == 0 {
			p.failAt(tree.at, "a tuple needs at least one type")
		}
	case p.accept("result"):
		tree.kind = KindResult
		tree.elems = p.resultTypes(depth)
	case p.accept("own"):
		tree.kind, tree.name = KindOwn, p.handle()
	case p.accept("borrow"):
		tree.kind, tree.name = KindBorrow, p.handle()
	case p.is("future"), p.is("stream"), p.is("error-context"), p.is("map"):
		p.failAt(tree.at, "the type `%s` is not supported, because it is not part of WIT 0.2", p.token.text)
	default:
		p.unexpected("a type")
	}
	return tree
}

func (p *parser) handle() ident {
	p.expect("<")
	resource := p.ident()
	p.expect(">")
	return resource
}

// resultTypes reads what follows `result`: nothing, <T>, <T, E> or <_, E>.
func (p *parser) resultTypes(depth int) []*typeTree {
	types := make([]*typeTree, 2)
	if !p.accept("<") {
		return types
	}
	if p.accept("_") {
		p.expect(",")
		types[1] = p.typ(depth + 1)
	} else {
		types[0] = p.typ(depth + 1)
		if p.accept(",") {
			types[1] = p.typ(depth + 1)
		}
	}
	p.expect(">")
	return types
}

func (p *parser) worldBody(tree *worldTree) {
	p.block(func(doc string, g gate) {
		switch {
		case p.bodyItem(&tree.bodyTree, doc, g):
		case p.accept("include"):
			tree.includes = append(tree.includes, p.include(g))
		case p.accept("import"):
			tree.imports = append(tree.imports, p.extern(doc, g))
		case p.accept("export"):
			tree.exports = append(tree.exports, p.extern(doc, g))
		default:
			p.unexpected("`import`, `export`, `include`, `use` or a type")
		}
	})
}

func (p *parser) include(g gate) includeTree {
	tree := includeTree{gate: g, from: p.path()}
	if !p.accept("with") {
		p.expect(";")
		return tree
	}
	p.list("{", "}", func() {
		name := p.ident()
		p.expect("as")
		tree.names = append(tree.names, renameTree{name, p.ident()})
	})
	return tree
}

func (p *parser) extern(doc string, g gate) externTree {
	tree := externTree{gate: g}
	name := p.ident()
	if !p.is(":") {
		tree.iface = path{name: name}
		p.expect(";")
		return tree
	}
	ahead := p.lexer
	switch kind, mark := ahead.next(), ahead.next(); {
	case kind.kind == tokenKeyword && kind.text == "interface":
		p.advance()
		p.advance()
		tree.inline = &interfaceTree{ident: name, doc: doc}
		p.interfaceBody(tree.inline)
	case kind.kind == tokenName && mark.text == "/":
		tree.iface = p.pathAfter(name)
		p.expect(";")
	case kind.kind == tokenName && mark.text != "(":
		p.failAt(name.at, "`%s` is another name for an interface, which is not part of WIT 0.2 and not supported; write `namespace:package/interface`", name.name)
	default:
		p.advance()
		tree.fn = &funcTree{ident: name, doc: doc}
		p.function(tree.fn)
	}
	return tree
}
