/// The message heads of stored metadata, either as values or as encoded bytes that are decoded at first use.
///
/// Creating strings for every field takes as long as reading a small file, and many uses of a store need only the freshness.
enum HeldHeads: Sendable {
  case values(MessageHeadsBox)
  case encoded(EncodedHeads)

  init(_ heads: MessageHeads) { self = .values(MessageHeadsBox(heads)) }

  /// The decoded heads, decoded now if necessary. They are a reference, so that reading one field neither copies the heads nor
  /// runs a coroutine for each level.
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
