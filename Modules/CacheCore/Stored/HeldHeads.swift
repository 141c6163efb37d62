/// The heads as values, or as the bytes that a store has read, of which the values are made when somebody asks first.
///
/// Making strings of every field takes as long as reading a small file does, and who looks into a store often goes by the facts
/// alone.
enum HeldHeads: Sendable {
  case values(MessageHeadsBox)
  case encoded(EncodedHeads)

  init(_ heads: MessageHeads) { self = .values(MessageHeadsBox(heads)) }

  /// The values, made now if they were not yet. By reference: who reads one field neither copies the heads nor goes through a
  /// coroutine for each level.
  var box: MessageHeadsBox {
    switch self {
    case .values(let box): box
    case .encoded(let encoded): encoded.decoded
    }
  }

  var values: MessageHeads {
    get { box.heads }
    _modify {
      var changed = box.heads
      defer { self = .values(MessageHeadsBox(changed)) }
      yield &changed
    }
  }
}

extension HeldHeads: Hashable {
  static func == (a: Self, b: Self) -> Bool {
    switch (a, b) {
    case (.values(let a), .values(let b)) where a === b: true
    case (.encoded(let a), .encoded(let b)) where a === b: true
    default: a.values == b.values
    }
  }

  func hash(into hasher: inout Hasher) { hasher.combine(values) }
}
