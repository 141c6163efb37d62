internal import HTTPTypes

/// Whether an answer that a provider makes may be kept by the cache above it: what its `Cache-Control` says.
public enum ProvidedCaching: Hashable, Sendable {
  /// Not kept: whoever provides it has it at hand (`no-store`).
  case never
  /// Kept, and used without asking for so long (`max-age`, in whole seconds; a part of one is dropped): answers of success (2xx).
  /// What is no success may be another one the next time, and says nothing of how long it holds.
  case fresh(for: Duration)

  /// The field's value.
  var cacheControl: String {
    switch self {
    case .never: "no-store"
    case .fresh(let duration): "max-age=\(max(0, duration.components.seconds))"
    }
  }

  /// Sets the field, unless the answer has one.
  func apply(to head: inout HTTPResponse) {
    guard head.headerFields[.cacheControl] == nil else { return }
    if case .fresh = self, head.status.kind != .successful { return }
    head.headerFields[.cacheControl] = cacheControl
  }
}
