internal import CacheCore

/// Makes a form's value of fetched bytes, and keeps it in memory under its own key.
struct Deriving<Value: Sendable>: Sendable {
  let load: ResolvedLoad
  let form: Form<Value>

  func value(of fetched: Fetched) async throws(CacheError) -> Derived<Value> {
    let labelled = fetched.with { $0.key = fetched.key.with(form: form.id) }
    let facets = load.memory.map(MemoryFacets.init)
    if load.reads.contains(.memory) || fetched.source == .revalidated,
      let kept = facets?.value(of: labelled.key, for: fetched.metadata, as: Value.self)
    {
      return Derived(value: kept, fetched: labelled)
    }
    let value = try await make(fetched)
    // Only what belongs to a stored answer is kept: without its metadata a value could never be found again.
    if load.writes.contains(.memory), fetched.isShareable, let facets,
      facets.index(of: fetched.key.resource)?.elements.contains(where: { $0.metadata.revision == fetched.metadata.revision })
        == true
    {
      facets.insert(value, cost: form.cost(value), of: labelled.key, for: fetched.metadata)
    }
    return Derived(value: value, fetched: labelled)
  }

  private func make(_ fetched: Fetched) async throws(CacheError) -> Value {
    let form = form
    let outcome: Result<Value, CacheError> = await withTaskExecutorPreference(load.executor) {
      do throws(CacheError) {
        return .success(try await form.make(Body(fetched.data), fetched.metadata))
      } catch {
        return .failure(error)
      }
    }
    return try outcome.get()
  }
}
