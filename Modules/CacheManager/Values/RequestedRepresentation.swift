internal import CacheCore

/// The representations that the waiters of one coalesced load want. A waiter that joins adds its own, which counts for every
/// decision that the load has not made yet.
///
/// A coalesced load without a requested representation obtains the bytes and stores the original.
final class RequestedRepresentation: Sendable {
  private struct Wants: Sendable {
    /// Whether a waiter wants the body itself.
    var bytes: Bool
    /// Whether a waiter wants the original in the durable store.
    var original: Bool
    /// The transforms that waiters want. A waiter needs no body if the value is stored in its transform.
    var transforms: Set<String> = []
  }

  private let wants: Lock<Wants>

  /// - Parameters:
  ///   - transform: The transform whose stored value is enough, or `nil` if only the bytes are enough.
  ///   - keepsOriginal: Whether the original is to be stored.
  init(transform: String?, keepsOriginal: Bool) {
    wants = Lock(Wants(bytes: transform == nil, original: keepsOriginal, transforms: transform.map { [$0] } ?? []))
  }

  /// Creates the representation for the value of a transform. A stored value is enough if the transform can store values,
  /// otherwise the bytes are wanted.
  convenience init<Value>(for transform: ResourceTransform<Value>) {
    self.init(transform: transform.coding == nil ? nil : transform.id, keepsOriginal: true)
  }

  /// Adds the representation that another waiter wants, or `nil` for the bytes and a stored original.
  func add(_ other: RequestedRepresentation?) {
    let more = other.map { $0.wants.withLock { $0 } } ?? Wants(bytes: true, original: true)
    wants.withLock { wants in
      wants.bytes = wants.bytes || more.bytes
      wants.original = wants.original || more.original
      wants.transforms.formUnion(more.transforms)
    }
  }

  var wantsBytes: Bool { wants.withLock { $0.bytes } }

  var keepsOriginal: Bool { wants.withLock { $0.original } }

  /// The transforms whose stored values are enough.
  var transforms: Set<String> { wants.withLock { $0.transforms } }

  /// Whether the values that are stored in these transforms are enough for every waiter.
  func isMet(by transforms: [String: Int64?]) -> Bool {
    wants.withLock { wants in !wants.bytes && wants.transforms.allSatisfy { transforms[$0] != nil } }
  }
}
