/// How a load came by its value, beside where its answer came from (``ResourceSource``).
public enum ValueOrigin: String, Hashable, Sendable, CaseIterable {
  /// The bytes are the value.
  case original
  /// The value was in memory.
  case kept
  /// It was decoded from what the durable store keeps of it: a stored variant.
  case stored
  /// It was made of the original's bytes: of stored ones, or of those that came.
  case made
}
