internal import CacheCore

/// What those who wait for one coalesced load want of it. It grows while the coalesced load is under way: who joins before
/// something is decided is heard.
///
/// A load without one wants the bytes, and the original kept.
final class RequestedRepresentation: Sendable {
  private struct Wants: Sendable {
    /// The body itself.
    var bytes: Bool
    /// The original in the durable store.
    var original: Bool
    /// Values that can do without the body where they are stored in these transforms.
    var transforms: Set<String> = []
  }

  private let wants: Lock<Wants>

  /// - Parameters:
  ///   - transform: what is enough where it is stored; nil: nothing but the bytes.
  ///   - keepsOriginal: whether the original is to be stored.
  init(transform: String?, keepsOriginal: Bool) {
    wants = Lock(Wants(bytes: transform == nil, original: keepsOriginal, transforms: transform.map { [$0] } ?? []))
  }

  /// The value of a transform, wherever it can be had from.
  convenience init<Value>(for transform: ResourceTransform<Value>) {
    self.init(transform: transform.coding == nil ? nil : transform.id, keepsOriginal: true)
  }

  /// One more waits, who wants this; nil: the bytes, and the original kept.
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

  /// The transforms that are enough where they are stored.
  var transforms: Set<String> { wants.withLock { $0.transforms } }

  /// Whether everybody is content with what is stored in these transforms.
  func isMet(by transforms: [String: Int64?]) -> Bool {
    wants.withLock { wants in !wants.bytes && wants.transforms.allSatisfy { transforms[$0] != nil } }
  }
}
