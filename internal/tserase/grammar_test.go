package tserase_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// grammar has the ways to write each part of code, the shortest ones first: Statement, Expression, Type, Name, Binding, Parameters, Returns,
// Generics, and X for what follows a < and can be a type or an expression.
var grammar = map[string][]string{
	"N": {
		"a", "b", "c", "as", "type", "async", "of", "get", "is", "satisfies", "abstract", "declare", "namespace", "interface", "let", "await", "yield", "static", "readonly", "keyof", "infer", "asserts",
		"using", "module", "global", "enum", "undefined", "arguments",
	},
	"T": {
		"A", "any", "null", "1", "'s'", "void", "this", "`t`", "typeof a . b", "T [ ]", "T [ T ]", "T | T", "T & T", "| T", "A < T >", "A < T , T >", "A . B", "{ a : T ; b ? : T }", "{ a ( P ) : T }", "[ T , ... T ]",
		"[ a : T ]", "( T )", "( P ) => T", "new ( P ) => T", "< t > ( a : t ) => T", "keyof T", "readonly T [ ]", "T extends T ? T : T", "( ) => a is T", "unique symbol", "N",
	},
	"E": {
		"N", "1", "'s'", "`t`", "/r/g", "this", "E as T", "E satisfies T", "E !", "E ! . a", "E + E", "E - E", "E / E / E", "E < E", "E > E", "E == E", "E && E", "E ?? E", "E ** E", "E >> E", "E in E", "E = E", "E ||= E",
		"E ? E : E", "E ? ( E ) : N => E", "E < T > ( E )", "E < T , T > ( )", "E < T > `t`", "E < T >", "E < T > ?. ( )", "f ( E < X , E > ( E ) )", "f ( E < X > ( E ) )", "G ( P ) R => E", "async G ( P ) R => E",
		"async G ( P ) R => { S }", "( P ) R => { S }", "N => E", "async N => E", "function N G ( P ) R { S }", "async function * ( P ) R { S }", "( E )", "( E as T ) . a", "[ E , ... E ]", "{ N : E , N }", "{ ... E , [ E ] : E }",
		"{ N G ( P ) R { S } }", "{ get N ( ) R { S } , async * N ( P ) { } }", "{ async ( ) { S } , get : E }", "`a${ E }b${ E }`", "new E ( E )", "new E < T > ( E )", "new E", "await E", "typeof E", "! E", "- E", "++ E", "E ++",
		"yield E", "E ?. a", "E ?. [ E ]", "E . N", "E [ E ]", "E ( E , E )", "< any > E",
	},
	"X": {
		"T", "E", "typeof 1", "new A", "void 0", "a [ 1 + 1 ]", "a [ b , c ]", "( ( a = 1 ) => b )", "{ a : 1 + b }", "{ a }", "{ a ( ) { } }", "{ ... a }", "[ a + 1 ]", "[ a , , b ]", "a < b", "any < b", "( ( { a } ) => b )",
		"{ get a ( ) { } }", "[ E ? E : E ]", "- a", "typeof ( a )", "{ if : a }", "[ this : a ]", "{ readonly : a }", "( ( ... a ) => b )",
	},
	"B": {"N", "N", "{ N , N : B = E }", "[ B , , ... B ]"},
	"P": {"", "B", "B : T", "N ? : T , B = E", "... B : T", "this : T"},
	"R": {"", "", ": T", ": T", ": N is T"},
	"G": {"", "", "< t >", "< t , >", "< const t extends T = T >"},
	"S": {
		"E ;", "E \n", "E ; S", "E \n S", "let B : T = E \n", "const B = E ;", "var N ! : T ;", "let N : T \n S", "type N G = T \n S", "type N = T ;", "interface N G { a : T } S", "interface N extends A < T > { }",
		"if ( E ) S else S", "for ( const B of E ) S", "for ( let B : T = E ; E ; E ) S", "for ( E in E ) S", "while ( E ) S", "do S while ( E ) S", "return E ;", "return \n E ;", "throw E ;", "try { S } catch ( e : T ) { S }",
		"switch ( E ) { case E : S default : S }", "N : S", "{ S }", "function N G ( P ) R { S } S", "async function N ( P ) R { S }", "N \n N ;", "break ;", "type \n a = 1 ;", "async \n ( E ) \n { }", "let \n a ;",
	},
}

// written writes a part of code, nested to a depth, with breaks of lines and comments between the tokens. Below the depth it takes the first ways,
// which end.
func written(r *rand.Rand, to *strings.Builder, part string, depth, breaks int) {
	ways := grammar[part]
	way := ways[r.IntN(len(ways))]
	if depth <= 0 {
		way = ways[r.IntN(min(2, len(ways)))]
	}
	for token := range strings.SplitSeq(way, " ") {
		if grammar[token] == nil {
			to.WriteString(token)
		} else {
			written(r, to, token, depth-1, breaks)
		}
		switch n := r.IntN(100); {
		case n < breaks:
			to.WriteString("\n")
		case n == 98:
			to.WriteString("/*\n*/")
		case n == 99:
			to.WriteString("// comment\n")
		default:
			to.WriteString(" ")
		}
	}
}

// What a compiler makes of code of this grammar without its types is what it makes of the code.
func TestGrammar(t *testing.T) {
	all, erased := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		for range 50 {
			var body strings.Builder
			written(random, &body, "S", 1+random.IntN(4), random.IntN(12))
			if body.Len() > 1000 {
				continue
			}
			different, ok := difference(body.String())
			if different != "" && !strings.HasPrefix(different, "it has a mistake") {
				r.Errorf("%q\n%s", body.String(), different)
			}
			if all++; ok {
				erased++
			}
		}
	})
	t.Logf("%d of %d bodies", erased, all)
	if 10*erased < all {
		t.Errorf("only %d of %d bodies", erased, all)
	}
}
