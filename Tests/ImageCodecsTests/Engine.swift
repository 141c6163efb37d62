#if canImport(ImageIO) || VIPS
/// Whether there is an engine here: the suites that need one are compiled with it.
let hasEngine = true
#else
let hasEngine = false
#endif
