package ansible

// Doing returns what a line of events says is happening now, for somebody who
// watches, or empty.
func Doing(line []byte) string {
	e, ok := ParseEvent(line)
	switch {
	case !ok:
		return ""
	case e.Kind == EventTask:
		return "task: " + oneLine(e.Task, maxMessage)
	case e.Kind == EventPlay:
		return "play: " + oneLine(e.Play, maxMessage)
	default:
		return ""
	}
}
