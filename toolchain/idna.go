package toolchain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// The package tr46 has its tables as an array of 9,000 arrays and a dozen regular expressions, which take 1.6 MB of an image. repack
// puts the same tables into two strings, which code reads only for hosts with characters outside ASCII.
var repack = map[string]func(text []byte) (string, error){
	"node_modules/tr46/index.js":              adaptTR46,
	"node_modules/tr46/lib/mappingTable.json": packMapping,
	"node_modules/tr46/lib/regexes.js":        packPatterns,

	"node_modules/whatwg-url/lib/url-state-machine.js": adaptParser,
}

var tableSearch = lazyregexp.New(`(?s)\nfunction findStatus\(val\) \{\n.*?\n\}\n`)

// plainNames runs before tr46's tables: it handles names that need no mapping, which most do not.
const plainNames = `
const whole = module.exports.toASCII;
module.exports.toASCII = (name, options) => /[^\0-\x7f]|(?:^|\.)xn--/i.test(name) ? whole(name, options) : name.toLowerCase();
`

// adaptTR46 has tr46 look characters up with what packMapping makes.
func adaptTR46(text []byte) (string, error) {
	if len(tableSearch.FindAll(text, -1)) != 1 {
		return "", errors.New("pack the tables of tr46: it looks characters up in an unknown way")
	}
	return tableSearch.ReplaceAllString(string(text), "\nconst findStatus = mappingTable;\n") + plainNames, nil
}

// plainURLs runs before whatwg-url's parser, which takes a step for each character. It reads absolute URLs in which the parser would change and
// refuse nothing, which most are. A path in which a segment begins with a dot may need more, and so may long URLs.
const plainURLs = `
const plain = /^(https?):\/\/((?:[a-z\d-]+\.)*[a-z][a-z\d-]*|(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$|[/:?#])|(?=$|[/:?#]))){4})(?::(\d{1,5}))?((?:\/[\w!$%&'()*+,./:;=@~-]*)?)(?:\?([\w!$%&()*+,./:;=?@~-]*))?(?:#([\w!$%&'()*+,./:;=?@~-]*))?$/;
const partsOf = (input) => {
	const parts = input.length <= 2048 ? plain.exec(input) : null;
	return !parts || parts[3] > 65535 || /\/(?:\.|%2e)/i.test(parts[4]) || /(?:^|\.)xn--/.test(parts[2]) ? null : parts;
};
const portOf = (scheme, digits) => digits === undefined || +digits === defaultPort(scheme) ? null : +digits;
const whole = module.exports.basicURLParse;
module.exports.basicURLParse = (input, options) => {
	const parts = options?.url || options?.stateOverride ? null : partsOf(input);
	if (!parts) return whole(input, options);
	const [, scheme, name, digits, path, query = null, fragment = null] = parts;
	const host = /^[\d.]+$/.test(name) ? name.split(".").reduce((n, part) => n * 256 + +part, 0) : name;
	return { scheme, username: "", password: "", host, port: portOf(scheme, digits), path: path.slice(1).split("/"), query, fragment };
};
// What serializeURL makes of such a URL; undefined for others.
module.exports.plainHref = (input) => {
	const parts = partsOf(input);
	if (!parts) return undefined;
	const [, scheme, name, digits, path, query, fragment] = parts;
	const port = portOf(scheme, digits);
	return scheme + "://" + name + (port === null ? "" : ":" + port) + (path || "/") + (query === undefined ? "" : "?" + query) + (fragment === undefined ? "" : "#" + fragment);
};
`

// adaptParser puts plainURLs before the parser.
func adaptParser(text []byte) (string, error) {
	if n := bytes.Count(text, []byte("\nmodule.exports.basicURLParse = function (input, options) {\n")); n != 1 {
		return "", fmt.Errorf("adapt whatwg-url: its parser begins in %d places", n)
	}
	return string(text) + plainURLs, nil
}

// mappingModule is a function that returns status and mapping of a character. The table has a row for every run of characters, of
// three units: the length of the mapping, the status and the upper bits of its first character; the lower bits; and where the
// mapping starts in texts.
const mappingModule = `
const units = %s, texts = %s;
module.exports = (character) => {
	let low = 0, high = units.length / 3;
	while (high - low > 1) {
		const row = (low + high) >> 1;
		if (((units.charCodeAt(3 * row) & 31) << 16 | units.charCodeAt(3 * row + 1)) <= character) low = row;
		else high = row;
	}
	const head = units.charCodeAt(3 * low), start = units.charCodeAt(3 * low + 2);
	return [head >> 5 & 7, texts.slice(start, start + (head >> 8))];
};
`

// packMapping makes a module of the table of characters, which has a row for every run of them.
func packMapping(text []byte) (string, error) {
	var table [][]json.RawMessage
	if err := json.Unmarshal(text, &table); err != nil {
		return "", fmt.Errorf("pack the tables of tr46: %w", err)
	}
	var units, texts []uint16
	starts := map[string]int{}
	next, last := rune(0), uint16(0)
	for _, row := range table {
		var run [2]rune
		var status uint16
		var mapping string
		if len(row) < 2 || len(row) > 3 || json.Unmarshal(row[0], &run[0]) != nil && json.Unmarshal(row[0], &run) != nil ||
			json.Unmarshal(row[1], &status) != nil || len(row) == 3 && json.Unmarshal(row[2], &mapping) != nil {
			return "", fmt.Errorf("pack the tables of tr46: a row is %s", row)
		}
		encoded := utf16.Encode([]rune(mapping))
		start, known := starts[mapping]
		if !known {
			start = len(texts)
			starts[mapping] = start
			texts = append(texts, encoded...)
		}
		if run[0] != next || status > 7 || len(encoded) > 0xff || start > 0xffff {
			return "", fmt.Errorf("pack the tables of tr46: the row %s cannot be packed", row)
		}
		next = max(run[0], run[1]) + 1
		if head := uint16(len(encoded))<<8 | status<<5; mapping != "" || head != last || len(units) == 0 {
			units = append(units, head|uint16(run[0]>>16), uint16(run[0]), uint16(start))
			last = head
		}
	}
	if next != 0x110000 {
		return "", fmt.Errorf("pack the tables of tr46: the table of characters ends before %U", next)
	}
	return fmt.Sprintf(mappingModule, quoteUnits(units), quoteUnits(texts)), nil
}

// patternsModule has the package's expressions, and compiles each on first use.
const patternsModule = `
for (const [name, pattern] of %s) {
	let compiled;
	exports[name] = { test: (text) => (compiled ??= new RegExp(pattern, "u")).test(text) };
}
`

var (
	tablePattern = lazyregexp.New(`(?m)^const (\w+) = /(.*)/u;$`)
	tableExport  = lazyregexp.New(`(?m)^ +\w+,?$`)
	// An escaped character in a class that stands for itself there and is not half of another escape.
	escapedCharacter = lazyregexp.New(`\\u(?:\{([0-9A-F]+)\}|([0-9A-F]{4}))`)
)

// packPatterns makes a module of regular expressions that contain their characters unescaped.
func packPatterns(text []byte) (string, error) {
	found := tablePattern.FindAllSubmatch(text, -1)
	if len(found) == 0 || len(found) != len(tableExport.FindAll(text, -1)) {
		return "", errors.New("pack the tables of tr46: its patterns have an unknown form")
	}
	var list strings.Builder
	list.WriteString("[")
	for _, match := range found {
		pattern := escapedCharacter.ReplaceAllStringFunc(string(match[2]), func(escape string) string {
			c, err := strconv.ParseInt(strings.Trim(escape, `\u{}`), 16, 32)
			if err != nil || c < 0xa0 || c >= 0xd800 && c <= 0xdfff {
				return escape
			}
			return string(rune(c))
		})
		_, _ = fmt.Fprintf(&list, "[%q, %s],", match[1], quoteUnits(utf16.Encode([]rune(pattern))))
	}
	list.WriteString("]")
	return fmt.Sprintf(patternsModule, list.String()), nil
}

// quoteUnits writes a JavaScript string, of any UTF-16 units.
func quoteUnits(units []uint16) string {
	quoted := []byte{'"'}
	for _, unit := range units {
		quoted = fmt.Appendf(quoted, `\u%04x`, unit)
	}
	return string(append(quoted, '"'))
}
