package toolchain

import (
	"fmt"
	"slices"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// MinNode is the oldest major version of Node.js whose npm can be used.
const MinNode = 20

// NoNPM is the problem of a machine without npm.
const NoNPM = "npm is not installed"

// InstallNPM says how to get npm, as the start of a sentence.
func InstallNPM() string {
	return fmt.Sprintf("Install npm, which comes with Node.js %d or newer", MinNode)
}

var (
	disconnected   = []string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH"}
	offline        = append([]string{"ECONNRESET", "ETIMEDOUT", "ENOTCACHED", "ERR_SOCKET_TIMEOUT"}, disconnected...)
	codeWord       = lazyregexp.New(`\bE[A-Z0-9_]{3,30}\b`)
	brokenRegistry = lazyregexp.New(`^(E429|E5[0-9]{2}|FETCH_ERROR|EPROTO)$`)
	badCertificate = lazyregexp.New(`CERT|^UNABLE_TO_|^ERR_TLS`)
)

// NPMCode returns the code of an error in npm's messages, or nothing.
func NPMCode(said string) string { return codeWord.FindString(said) }

// NPMUnreached reports whether a code of npm says that its registry did not answer, or not like a registry. One that refuses this machine, or whose
// certificate is not trusted, was reached.
func NPMUnreached(code string) bool {
	return slices.Contains(offline, code) || brokenRegistry.MatchString(code)
}

// NPMDisconnected reports whether a code of npm says that there is no way to its registry, or nobody at that address: to try again at once is of no use.
func NPMDisconnected(code string) bool { return slices.Contains(disconnected, code) }

// NPMFault returns what a code of npm says is wrong with this machine or the registry, and what to do. Both are empty if the code
// says something else, for example about packages.
func NPMFault(code string) (problem, remedy string) {
	with := func(text string) string { return text + " (" + code + ")" }
	switch {
	case code == "ENOTCACHED":
		return with("npm's cache lacks what is needed, and no registry was asked"), "Connect this machine, and leave out --offline once."
	case slices.Contains(offline, code):
		return with("npm did not reach its registry"), "Connect this machine, or check npm's registry and proxy settings."
	case slices.Contains([]string{"E401", "E403", "ENEEDAUTH"}, code):
		return with("the registry refused this machine"), "Check npm's login for that registry."
	case slices.Contains([]string{"ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM"}, code):
		return with("npm cannot write"), "Check the room and the owners of the temporary folder and of the cache."
	case brokenRegistry.MatchString(code):
		return with("the server does not answer like a registry"), "Try again later, or check npm's registry and proxy settings."
	case badCertificate.MatchString(code):
		return with("the certificate of the registry is not trusted"), "Check npm's registry and cafile settings."
	default:
		return "", ""
	}
}
