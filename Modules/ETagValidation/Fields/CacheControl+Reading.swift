internal import CacheCore
internal import HTTPTypes

extension CacheControl {
  /// Adds the directives of a field line.
  mutating func read(_ line: String) {
    var line = line
    line.withUTF8 { bytes in
      for member in FieldList(bytes) { apply(Directive(member)) }
    }
  }

  private mutating func apply(_ directive: Directive) {
    let argument = directive.argument
    switch directive.name {
    case "max-age": maxAge.lower(to: argument.seconds ?? .zero)
    case "s-maxage": sharedMaxAge.lower(to: argument.seconds ?? .zero)
    case "stale-while-revalidate": staleWhileRevalidate.lower(to: argument.seconds ?? .zero)
    case "stale-if-error": staleIfError.lower(to: argument.seconds ?? .zero)
    case "max-stale":
      if case .none = argument { maxStale.lower(to: Self.anyAge) } else { maxStale.lower(to: argument.seconds ?? .zero) }
    case "min-fresh": minFresh = max(minFresh ?? .zero, argument.seconds ?? .seconds(DeltaSeconds.limit))
    case "no-cache": if let names = argument.fieldNames { limitNoCache(to: names) } else { noCache = true }
    case "private": if let names = argument.fieldNames { limitPrivate(to: names) } else { isPrivate = true }
    default: applyFlag(directive.name)
    }
  }

  /// Adds field names to `no-cache`. Quoted names limit the directive to these fields. It applies to the whole response if there
  /// is no name, or if one is a field that caches depend on. For example, a response without its `Vary` would match every
  /// request.
  mutating func limitNoCache(to names: [String]) {
    noCacheFields += names
    if !Self.canBeLeftOut(names) { noCache = true }
  }

  mutating func limitPrivate(to names: [String]) {
    privateFields += names
    if !Self.canBeLeftOut(names) { isPrivate = true }
  }

  private static func canBeLeftOut(_ names: [String]) -> Bool {
    !names.isEmpty && names.allSatisfy { !HTTPFields.isDecisive($0) }
  }

  /// Sets a flag. An argument that the flag should not have is ignored (RFC 9111 §5.2.3, RFC 8246 §2).
  mutating func applyFlag(_ name: UnsafeBufferPointer<UInt8>) {
    switch name {
    case "no-store": noStore = true
    case "no-transform": noTransform = true
    case "only-if-cached": onlyIfCached = true
    case "must-revalidate": mustRevalidate = true
    case "proxy-revalidate": proxyRevalidate = true
    case "must-understand": mustUnderstand = true
    case "public": isPublic = true
    case "immutable": immutable = true
    default: break
    }
  }
}

/// Matches a directive's name in any case. The inlined comparison of the lengths rules out most names.
@inline(__always)
private func ~= (lowercase: StaticString, name: UnsafeBufferPointer<UInt8>) -> Bool {
  name.count == lowercase.utf8CodeUnitCount && name.isLowercased(lowercase.utf8Start)
}

extension Duration? {
  fileprivate mutating func lower(to value: Duration) { self = Swift.min(self ?? value, value) }
}
