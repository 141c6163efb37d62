internal import CacheCore

extension DiskEngine {
  /// Whether memory alone shows that a resource has no transformed value. Unlike a lookup, this is not counted.
  func surelyLacksTransforms(of plain: EntryName) -> Bool {
    surely(plain.resource) { $0?.hasTransforms != true }
  }

  /// Returns the transformed values of a resource, without their bodies.
  func transforms(of resource: String, _ plain: EntryName) throws(CacheError) -> [ListedEntry] {
    folder.checkCounters(at: configuration.clock.uptime)
    let names: [EntryName]
    do throws(SystemError) {
      names = try folder.transformNames(of: plain)
    } catch {
      throw error.error("list the transforms", folder.path(plain))
    }
    var listed: [ListedEntry] = []
    for name in names {
      guard let file = try find(name, expecting: nil) else { continue }
      let key = file.key
      if key.resource == resource, !key.transform.isEmpty, isInPlace(key, name) {
        listed.append(ListedEntry(key: key, metadata: file.metadata))
      }
    }
    return listed
  }
}
