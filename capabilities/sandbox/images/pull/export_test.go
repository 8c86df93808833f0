package pull

import "time"

// Impatient returns options with which a layer is continued at once.
func Impatient(o Options) Options {
	o.pause = time.Nanosecond
	return o
}
