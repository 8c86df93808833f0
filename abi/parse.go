package abi

import (
	"regexp"
	"strings"
)

// Limits on what is parsed, so that a hostile text costs little. They are far above what interfaces written by people need.
const (
	// maxText is the size of one text in bytes.
	maxText = 1 << 20
	// maxName is the length of one name in bytes.
	maxName = 128
	// maxDepth is how deep types may nest, through named types too.
	maxDepth = 100
	// maxParts is how many parts a type or a function signature may have: types, fields, cases and labels, with named
	// types written out.
	maxParts = 10_000
	// maxInterfaceParts is the same for all types and functions of one interface.
	maxInterfaceParts = 100_000
	// maxItems is how many interfaces and worlds all texts together may have, and how many functions a world.
	maxItems = 1_000
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

	packageTree struct {
		name       packageName
		aliases    []aliasTree
		interfaces []*interfaceTree
		worlds     []*worldTree
	}
	// aliasTree is a `use` outside interfaces and worlds. It holds for its text only.
	aliasTree struct {
		as     ident
		target path
	}
	interfaceTree struct {
		ident
		doc   string
		uses  []useTree
		types []*typeDeclTree
		// funcs holds those of resources too, in the order of the text.
		funcs []*funcTree
	}
	worldTree struct {
		ident
		doc      string
		uses     []useTree
		includes []includeTree
		imports  []externTree
		exports  []externTree
	}
	useTree struct {
		from  path
		names []renameTree
	}
	includeTree struct {
		from  path
		names []renameTree
	}
	renameTree struct{ name, as ident }
	// externTree is an import or export: fn when it is not nil, else the interface.
	externTree struct {
		iface path
		fn    *funcTree
	}
	// typeDeclTree declares a record, variant, enum or flags with members, a resource, or with kind 0 an alias.
	typeDeclTree struct {
		ident
		doc      string
		kind     Kind
		resource bool
		members  []memberTree
		alias    *typeTree
	}
	// memberTree is a field, case, label or parameter. A case may lack a type, a label does. Only fields and cases keep
	// their doc.
	memberTree struct {
		ident
		doc string
		typ *typeTree
	}
	funcTree struct {
		ident
		doc string
		// resource is the name of the resource that form belongs to.
		resource string
		form     funcForm
		params   []memberTree
		result   *typeTree
	}
	// typeTree is a type expression. Kind 0 refers to a declared type by name, and so do KindOwn and KindBorrow.
	typeTree struct {
		kind Kind
		name ident
		at   position
		// elems are the element of a list or option, those of a tuple, and both types, or nil, of a result.
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

// parser reads one text by recursive descent. The first error stays in err and stops the tokens, so every loop ends.
type parser struct {
	lexer lexer
	token token
	err   error
}

func parseText(s *source) ([]*packageTree, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	p := &parser{lexer: newLexer(s)}
	p.advance()
	packages := p.packages()
	return packages, p.err
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

// until reports whether items follow before the closing mark, and takes the mark when none does.
func (p *parser) until(closing string) bool {
	if p.token.kind == tokenEnd {
		p.unexpected("`" + closing + "`")
	}
	return p.err == nil && !p.accept(closing)
}

// block reads items in braces, each after its doc comment and gates.
func (p *parser) block(item func(doc string)) {
	p.expect("{")
	for p.until("}") {
		doc := p.token.doc
		p.gates()
		item(doc)
	}
}

// list reads items between commas; the last comma may be left out.
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
		p.failAt(id.at, "`%s` is not a name: words of letters and digits, all lower or all upper case, each starting with a letter, with one `-` between", id.name)
	default:
		p.advance()
	}
	return id
}

func isKebab(name string) bool {
	for word := range strings.SplitSeq(name, "-") {
		if word == "" || word[0] >= '0' && word[0] <= '9' || strings.Contains(word, "_") ||
			strings.ToLower(word) != word && strings.ToUpper(word) != word {
			return false
		}
	}
	return true
}

// semver is a version by semver.org. It is cut off before a `.` that belongs to what follows, as in `@1.0.0.{a}`.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?`)

// version reads a version, which is not made of tokens, after the current token.
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
	version := semver.FindString(rest[:min(len(rest), maxName)])
	if version == "" {
		p.failAt(at, "expected a version such as 1.2.3")
	}
	p.lexer.offset += len(version)
	p.advance()
	return version
}

// gates reads `@since(...)` and its like. Everything is available, so they change nothing.
func (p *parser) gates() {
	for p.is("@") {
		p.advance()
		gate := p.ident()
		p.expect("(")
		key := p.ident()
		switch {
		case (gate.name == "since" || gate.name == "deprecated") && key.name == "version":
			if !p.is("=") {
				p.unexpected("`=`")
			}
			p.version()
		case gate.name == "unstable" && key.name == "feature":
			p.expect("=")
			p.ident()
		default:
			p.failAt(gate.at, "expected `@since(version = ...)`, `@deprecated(version = ...)` or `@unstable(feature = ...)`")
		}
		p.expect(")")
	}
}

func (p *parser) packages() []*packageTree {
	var packages []*packageTree
	var open *packageTree
	for p.err == nil && p.token.kind != tokenEnd {
		doc := p.token.doc
		p.gates()
		if !p.is("package") {
			if open == nil {
				p.failAt(p.token.at, "a WIT text starts with its package: `package namespace:name@1.2.3;`")
				break
			}
			p.packageItem(open, doc)
			continue
		}
		at := p.token.at
		p.advance()
		tree := &packageTree{}
		tree.name.namespace = p.ident().name
		p.expect(":")
		tree.name.name = p.ident().name
		if p.is("@") {
			tree.name.version = p.version()
		}
		if p.is("{") {
			p.block(func(doc string) { p.packageItem(tree, doc) })
		} else {
			if len(packages) > 0 {
				p.failAt(at, "a text has one `package` line, at its start; other packages are written `package namespace:name { ... }`")
			}
			p.expect(";")
			open = tree
		}
		packages = append(packages, tree)
	}
	return packages
}

func (p *parser) packageItem(pkg *packageTree, doc string) {
	switch {
	case p.accept("interface"):
		pkg.interfaces = append(pkg.interfaces, p.interfaceTree(doc))
	case p.accept("world"):
		pkg.worlds = append(pkg.worlds, p.worldTree(doc))
	case p.accept("use"):
		alias := aliasTree{target: p.path()}
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

func (p *parser) use() useTree {
	use := useTree{from: p.path()}
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

func (p *parser) interfaceTree(doc string) *interfaceTree {
	tree := &interfaceTree{ident: p.ident(), doc: doc}
	p.block(func(doc string) {
		switch {
		case p.accept("use"):
			tree.uses = append(tree.uses, p.use())
		case p.accept("resource"):
			tree.types = append(tree.types, p.resource(tree, doc))
		case p.token.kind == tokenName:
			fn := &funcTree{ident: p.ident(), doc: doc}
			p.expect(":")
			p.function(fn)
			tree.funcs = append(tree.funcs, fn)
		default:
			if decl := p.typeDecl(doc); decl != nil {
				tree.types = append(tree.types, decl)
			} else if p.token.kind == tokenKeyword {
				p.ident() // says how a function with that name is written
			} else {
				p.unexpected("a function, a type, a resource or `use`")
			}
		}
	})
	return tree
}

// typeDecl reads a declaration of a type that is not a resource. It returns nil when none starts here.
func (p *parser) typeDecl(doc string) *typeDeclTree {
	decl := &typeDeclTree{doc: doc}
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

func (p *parser) resource(tree *interfaceTree, doc string) *typeDeclTree {
	decl := &typeDeclTree{doc: doc, resource: true, ident: p.ident()}
	if p.accept(";") {
		return decl
	}
	p.block(func(doc string) {
		fn := &funcTree{doc: doc, resource: decl.name}
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
		tree.funcs = append(tree.funcs, fn)
	})
	return decl
}

// function reads `func(...) -> ...;`.
func (p *parser) function(fn *funcTree) {
	if p.is("async") {
		p.failAt(p.token.at, "`async` functions are not supported; return a resource that a caller can poll")
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
			p.failAt(p.token.at, "lists of fixed length are not supported")
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
		p.failAt(tree.at, "the type `%s` is not supported", p.token.text)
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

func (p *parser) worldTree(doc string) *worldTree {
	tree := &worldTree{ident: p.ident(), doc: doc}
	p.block(func(doc string) {
		switch {
		case p.accept("use"):
			tree.uses = append(tree.uses, p.use())
		case p.accept("include"):
			tree.includes = append(tree.includes, p.include())
		case p.accept("import"):
			tree.imports = append(tree.imports, p.extern(doc))
		case p.accept("export"):
			tree.exports = append(tree.exports, p.extern(doc))
		case p.is("type"), p.is("record"), p.is("variant"), p.is("enum"), p.is("flags"), p.is("resource"):
			p.failAt(p.token.at, "types are not supported in a world; declare them in an interface and `use` them")
		default:
			p.unexpected("`import`, `export`, `include` or `use`")
		}
	})
	return tree
}

func (p *parser) include() includeTree {
	tree := includeTree{from: p.path()}
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

func (p *parser) extern(doc string) externTree {
	name := p.ident()
	var tree externTree
	if !p.is(":") {
		tree.iface = path{name: name}
		p.expect(";")
		return tree
	}
	after := p.lexer
	switch next := after.next(); {
	case next.kind == tokenKeyword && (next.text == "func" || next.text == "async"):
		p.advance()
		tree.fn = &funcTree{ident: name, doc: doc}
		p.function(tree.fn)
	case next.kind == tokenKeyword && next.text == "interface":
		p.failAt(next.at, "an interface inside a world is not supported; declare it in the package")
	default:
		tree.iface = p.pathAfter(name)
		p.expect(";")
	}
	return tree
}
