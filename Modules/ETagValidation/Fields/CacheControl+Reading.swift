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
    case "no-cache":
      noCache = true
      noCacheFields += argument.fieldNames
    case "private":
      isPrivate = true
      privateFields += argument.fieldNames
    default: applyFlag(directive.name)
    }
  }

  /// An argument that a flag should not have changes nothing (RFC 9111 §5.2.3, RFC 8246 §2).
  private mutating func applyFlag(_ name: String) {
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
