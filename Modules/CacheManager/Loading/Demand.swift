internal import CacheCore

/// What those who wait for one flight want of it. It grows while the flight is under way: who joins before something is decided is heard.
///
/// A load without one wants the bytes, and the original kept.
final class Demand: Sendable {
  private struct Wants: Sendable {
    /// The body itself.
    var bytes: Bool
    /// The original in the durable store.
    var original: Bool
    /// Values that can do without the body where they are stored in these forms.
    var forms: Set<String> = []
  }

  private let wants: Lock<Wants>

  /// - Parameters:
  ///   - form: what is enough where it is stored; nil: nothing but the bytes.
  ///   - keepsOriginal: whether the original is to be stored.
  init(form: String?, keepsOriginal: Bool) {
    wants = Lock(Wants(bytes: form == nil, original: keepsOriginal, forms: form.map { [$0] } ?? []))
  }

  /// The value of a form, wherever it can be had from.
  convenience init<Value>(for form: Form<Value>) { self.init(form: form.coding == nil ? nil : form.id, keepsOriginal: true) }

  /// One more waits, who wants this; nil: the bytes, and the original kept.
  func add(_ other: Demand?) {
    let more = other.map { $0.wants.withLock { $0 } } ?? Wants(bytes: true, original: true)
    wants.withLock { wants in
      wants.bytes = wants.bytes || more.bytes
      wants.original = wants.original || more.original
      wants.forms.formUnion(more.forms)
    }
  }

  var wantsBytes: Bool { wants.withLock { $0.bytes } }

  var keepsOriginal: Bool { wants.withLock { $0.original } }

  /// The forms that are enough where they are stored.
  var forms: Set<String> { wants.withLock { $0.forms } }

  /// Whether everybody is content with what is stored in these forms.
  func isMet(by forms: [String: Int64?]) -> Bool {
    wants.withLock { wants in !wants.bytes && wants.forms.allSatisfy { forms[$0] != nil } }
  }
}
