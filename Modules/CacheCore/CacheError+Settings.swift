extension CacheError {
  /// Throws ``Code/invalidConfiguration`` if the number of a setting is below a minimum. NaN is below every minimum.
  package static func require<Number: Comparable>(
    _ setting: String, _ value: Number?, in range: PartialRangeFrom<Number>
  ) throws(CacheError) {
    guard let value, !range.contains(value) else { return }
    throw invalid(setting, value, "at least \(range.lowerBound)")
  }

  /// Throws ``Code/invalidConfiguration`` if the number of a setting is outside a range. NaN is outside every range.
  package static func require<Number: Comparable>(
    _ setting: String, _ value: Number?, in range: ClosedRange<Number>
  ) throws(CacheError) {
    guard let value, !range.contains(value) else { return }
    throw invalid(setting, value, "from \(range.lowerBound) to \(range.upperBound)")
  }

  /// Throws ``Code/invalidConfiguration`` if the duration of a setting is zero or less.
  package static func require(_ setting: String, positive value: Duration?) throws(CacheError) {
    guard let value, value <= .zero else { return }
    throw invalid(setting, value, "greater than zero")
  }

  private static func invalid(_ setting: String, _ value: some Any, _ range: String) -> CacheError {
    CacheError(.invalidConfiguration, reason: "the setting '\(setting)' must be \(range), not \(value)")
  }
}

/// A component with settings whose own functions cannot throw. A manager with such a component throws the error of its settings.
package protocol CheckedComponent {
  /// The result of checking the settings, which is made once.
  var validity: Result<Void, CacheError> { get }
}
