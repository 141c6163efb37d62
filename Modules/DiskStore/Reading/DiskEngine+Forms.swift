internal import CacheCore

extension DiskEngine {
  /// Whether there surely is no derived form of a resource, by memory alone. Unlike a look, it is not counted.
  func surelyLacksForms(of plain: EntryName) -> Bool {
    index.lacksForms(of: plain.resource, folder.foreignChanges(at: configuration.clock.uptime))
  }

  /// The derived forms of a resource, without their bodies.
  func forms(of resource: String, _ plain: EntryName) throws(CacheError) -> [ListedEntry] {
    folder.look(at: configuration.clock.uptime)
    let names: [EntryName]
    do throws(SystemError) {
      names = try folder.formNames(of: plain)
    } catch {
      throw error.error("list the forms", folder.path(plain))
    }
    var listed: [ListedEntry] = []
    for name in names {
      guard let file = try find(name, expecting: nil) else { continue }
      let key = file.key
      if key.resource == resource, !key.form.isEmpty, isInPlace(key, name) {
        listed.append(ListedEntry(key: key, metadata: file.metadata))
      }
    }
    return listed
  }
}
