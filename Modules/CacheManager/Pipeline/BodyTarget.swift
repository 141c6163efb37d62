internal import CacheCore

/// Where the bytes of a load go.
enum BodyTarget: Sendable {
  /// Into memory, for who waits, and into every layer that may be written.
  case memory
  /// Into a file of the caller's as they come, and into the durable store. The memory store gets none of them.
  case file(PartialFile)
  /// Into the durable store, and nowhere else.
  case store

  var isMemory: Bool { if case .memory = self { true } else { false } }

  var isStore: Bool { if case .store = self { true } else { false } }

  /// Whether nobody wants to have what is stored already: it lies where it is to be, or the caller has had it.
  var isContentWithStored: Bool {
    switch self {
    case .memory: false
    case .file(let draft): draft.isSealed
    case .store: true
    }
  }
}
