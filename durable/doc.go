// Package durable keeps runs: calls of tools that are written down, so that they sleep without memory, and go on in another process at the await at
// which they were.
//
// A run is a durable call of [host]: its operations and their answers are a log, and where it waits for long, its memory and handles are a
// snapshot that says what the log said before. Both are in one database file, compressed, encrypted and authenticated with the owner's key. Several
// processes may work on one file: a run belongs to one of them at a time, and if that process ends or stops, another takes the run over within
// seconds. Before an operation has an effect, everything before it is on the disk, so the new owner knows what happened.
//
// A run can also be of Go code: see [Function]. Its log has the answers of its steps, and it goes on by running again with them.
package durable
