package sandbox

// Follows reports whether the next pull looks only where something may have changed.
func (s *Sandbox) Follows() bool {
	for _, h := range s.held.synced {
		if !h.known {
			return false
		}
	}
	return len(s.held.synced) > 0
}
