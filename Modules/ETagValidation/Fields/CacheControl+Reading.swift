internal import CacheCore
internal import HTTPTypes

extension CacheControl {
  /// Adds the directives of a field line.
  mutating func read(_ line: String) {
    for member in FieldList(line) { apply(Directive(member)) }
  }

  private mutating func apply(_ directive: Directive) {
    let argument = directive.argument
    switch directive.name {
    case "max-age": maxAge.lower(to: argument.seconds ?? .zero)
    case "s-maxage": sharedMaxAge.lower(to: argument.seconds ?? .zero)
    case "stale-while-revalidate": staleWhileRevalidate.lower(to: argument.seconds ?? .zero)
    case "stale-if-error": staleIfError.lower(to: argument.seconds ?? .zero)
    case "max-stale": maxStale.lower(to: argument == .none ? Self.anyAge : argument.seconds ?? .zero)
    case "min-fresh": minFresh = max(minFresh ?? .zero, argument.seconds ?? .seconds(DeltaSeconds.limit))
    case "no-cache": argument.isQuoted ? limitNoCache(to: argument.fieldNames) : (noCache = true)
    case "private": argument.isQuoted ? limitPrivate(to: argument.fieldNames) : (isPrivate = true)
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
    !names.isEmpty && names.allSatisfy { !HTTPFields.decisive.contains($0) }
  }

  /// Sets a flag. An argument that the flag should not have is ignored (RFC 9111 §5.2.3, RFC 8246 §2).
  mutating func applyFlag(_ name: String) {
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

extension Duration? {
  fileprivate mutating func lower(to value: Duration) { self = Swift.min(self ?? value, value) }
}
