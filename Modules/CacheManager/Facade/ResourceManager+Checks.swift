package import CacheCore

extension ResourceManager.Configuration {
  /// Throws `CacheError.Code.invalidConfiguration` if a number is out of its range, here or in a component whose own functions
  /// cannot throw.
  package func check() throws(CacheError) {
    try CacheError.require("maximumConcurrentTransforms", maximumConcurrentTransforms, in: 1...)
    try CacheError.require("timeout", positive: timeout)
    try CacheError.require("storeWriteTimeout", storeWriteTimeout, in: .zero...)
    try CacheError.require("storeReadTimeout", storeReadTimeout, in: .zero...)
    try CacheError.require("redirectLimit", redirectLimit, in: 0...)
    try CacheError.require("maximumBodySize", maximumBodySize, in: 0...)
    try CacheError.require("memoryBudget", memoryBudget, in: 1...)
    try CacheError.require("maximumBodyInMemory", maximumBodyInMemory, in: 0...)
    try CacheError.require("collapseTimeout", collapseTimeout, in: .zero...)
    try policy.check()
    for component in [memory, validator, executor, fleet] as [(any Sendable)?] {
      try (component as? any CheckedComponent)?.validity.get()
    }
  }
}

extension LoadPolicy {
  fileprivate func check() throws(CacheError) {
    guard case .revalidate(let interval, let patience) = self else { return }
    try CacheError.require("atMostEvery", interval, in: .zero...)
    try CacheError.require("showCachedAfter", patience, in: .zero...)
  }
}

extension RequestOptions.Storage {
  /// Whether no number of the options is out of its range.
  var isValid: Bool { !needsCheck || (try? checkAll()) != nil }

  /// Throws `CacheError.Code.invalidConfiguration` if a number of the options is out of its range.
  func check() throws(CacheError) { if needsCheck { try checkAll() } }

  /// Whether the options have a setting to check. Most have none.
  private var needsCheck: Bool {
    // A lookup in memory makes this check, and image views always set a policy.
    if case .revalidate? = values.policy { return true }
    return values.timeout != nil || values.idleTimeout != nil || values.redirectLimit != nil || values.maximumBodySize != nil
      || values.memory != nil || values.validator != nil || values.executor != nil
  }

  @inline(never)
  private func checkAll() throws(CacheError) {
    try CacheError.require("timeout", positive: values.timeout)
    try CacheError.require("idleTimeout", positive: values.idleTimeout)
    try CacheError.require("redirectLimit", values.redirectLimit, in: 0...)
    try CacheError.require("maximumBodySize", values.maximumBodySize, in: 0...)
    try values.policy?.check()
    if case .use(let memory)? = values.memory { try (memory as? any CheckedComponent)?.validity.get() }
    if case .use(let validator)? = values.validator { try (validator as? any CheckedComponent)?.validity.get() }
    if let executor = values.executor { try (executor as? any CheckedComponent)?.validity.get() }
  }
}
