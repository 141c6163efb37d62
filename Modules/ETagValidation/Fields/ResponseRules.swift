internal import HTTPTypes

/// How this cache reads what an answer says: whose cache it is, which fields speak to it, and what is guessed where nothing is
/// said.
struct ResponseRules: Hashable {
  var mode: CacheMode
  /// Targeted fields in the order of their weight (RFC 9213 §2.2); a private cache is nobody's target.
  var targets: [HTTPField.Name]
  var heuristics: Heuristics?
  var defaultLifetime: Duration?

  /// The directives that count for an answer.
  func directives(of fields: HTTPFields) -> ResponseDirectives { ResponseDirectives(fields, self) }
}
