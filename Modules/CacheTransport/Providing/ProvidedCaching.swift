internal import HTTPTypes

/// Whether an answer that a provider makes may be kept by the cache above it: what its `Cache-Control` says.
public enum ProvidedCaching: Hashable, Sendable {
  /// Not kept: whoever provides it has it at hand (`no-store`).
  case never
  /// Kept, and used without asking for so long (`max-age`, in whole seconds; a part of one is dropped).
  case fresh(for: Duration)

  /// The field's value.
  var cacheControl: String {
    switch self {
    case .never: "no-store"
    case .fresh(let duration): "max-age=\(max(0, duration.components.seconds))"
    }
  }

  /// Sets the field, unless the answer has one.
  func apply(to fields: inout HTTPFields) {
    if fields[.cacheControl] == nil { fields[.cacheControl] = cacheControl }
  }
}
