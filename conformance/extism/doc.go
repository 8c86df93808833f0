// Package extism has tests that run Extism plug-ins on Stile and on extism/go-sdk, and compare what they do. It is a module of its own, so
// that nobody who uses Stile gets the SDK or its engine.
package extism
