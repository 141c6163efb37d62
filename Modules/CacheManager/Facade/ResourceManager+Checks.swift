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

extension RequestOptions {
  /// Whether the options have a setting to check. Most have none.
  fileprivate var needsCheck: Bool {
    // A lookup in memory makes this check, and image views always set a policy.
    if case .revalidate? = policy { return true }
    return timeout != nil || idleTimeout != nil || redirectLimit != nil || maximumBodySize != nil || memory != nil
      || validator != nil || executor != nil
  }

  @inline(never)
  fileprivate func check() throws(CacheError) {
    try CacheError.require("timeout", positive: timeout)
    try CacheError.require("idleTimeout", positive: idleTimeout)
    try CacheError.require("redirectLimit", redirectLimit, in: 0...)
    try CacheError.require("maximumBodySize", maximumBodySize, in: 0...)
    try policy?.check()
    if case .use(let memory)? = memory { try (memory as? any CheckedComponent)?.validity.get() }
    if case .use(let validator)? = validator { try (validator as? any CheckedComponent)?.validity.get() }
    if let executor { try (executor as? any CheckedComponent)?.validity.get() }
  }
}

extension LoadCoordinator {
  /// Throws `CacheError.Code.invalidConfiguration` if a number of the manager or of a request's options is out of its range.
  func check(_ options: RequestOptions) throws(CacheError) {
    try validity.get()
    if options.needsCheck { try options.check() }
  }
}
