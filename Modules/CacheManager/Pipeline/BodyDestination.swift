internal import CacheCore

/// The place that the bytes of a response go to.
enum BodyDestination: Sendable {
  /// To a caller that reads them as a stream. A body that is small enough also goes into the memory store.
  case stream
  /// Into memory, for the waiters, and into every layer that may be written.
  case memory
  /// Into a file of the caller's, and into the durable store. The memory store gets none of them.
  case file(PartialFile)
  /// Into the durable store, and nowhere else.
  case store

  /// Whether the memory store may get the bytes.
  var includesMemory: Bool {
    switch self {
    case .stream, .memory: true
    case .file, .store: false
    }
  }

  var isMemory: Bool { if case .memory = self { true } else { false } }

  var isStore: Bool { if case .store = self { true } else { false } }

  var isStream: Bool { if case .stream = self { true } else { false } }
}
