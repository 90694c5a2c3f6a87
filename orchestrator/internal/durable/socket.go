package durable

// MaxSocketPath is how long the path of a unix socket may be, in bytes: sun_path
// holds 108 with the final NUL (unix(7)).
const MaxSocketPath = 107
