/// The origin of a load's value. ``ResourceSource`` states the origin of the response.
public enum ValueOrigin: String, Hashable, Sendable, CaseIterable {
  /// The load asked for the bytes, which need no transform.
  case original
  /// The value was in memory.
  case memory
  /// The value was decoded from a stored variant on disk.
  case disk
  /// The value was made from the original's bytes by the transform.
  case transformed
}
