package host

// Validating takes all room for validations until release is called.
func (h *Host) Validating() (release func()) {
	_ = h.validating.Acquire(h.closing, maxValidating) // nothing else validates
	return func() { h.validating.Release(maxValidating) }
}
