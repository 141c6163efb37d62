// A custom store: checked against the store contract, then used by one manager and by one request.
// `swift run --package-path Examples/OwnBackend OwnBackend`
import CacheTesting
import Etagere
import Foundation

func expect(_ isTrue: Bool, _ what: String) {
  print(isTrue ? "  as expected: \(what)" : "  WRONG, expected: \(what)")
  if !isTrue { exit(1) }
}

print("The cases of the store contract, each on a new store")
for statement in StoreContract.cases {
  do {
    try await statement.run(on: DictionaryStore())
    print("  passed: \(statement)")
  } catch {
    expect(false, "\(statement) (\(error))")
  }
}

let url = URL(string: "https://example.com/logo.svg") ?? URL(filePath: "/")
let network = ScriptedDownloader()
network.serve(url) { _ in .ok("<svg/>", etag: "\"1\"", cacheControl: "max-age=60") }

func manager(_ store: any CacheStore) -> ResourceManager {
  var configuration = ResourceManager.Configuration()
  configuration.downloader = network
  configuration.store = store
  configuration.validator = ETagValidator()
  // The response is in the store when the load has ended, however slow the store is.
  configuration.storeWriteTimeout = nil
  return ResourceManager(configuration)
}

do {
  print("The store of one manager")
  let store = DictionaryStore()
  let first = try await manager(store).load(url)
  let stored = await store.count
  expect(first.source == .network && stored == 1, "loaded from the network and stored")
  let second = try await manager(store).load(url)
  expect(second.source == .disk && second.data == first.data, "a new manager finds the response in the store")

  print("The store of one request")
  let other = DictionaryStore()
  let elsewhere = RequestOptions { $0.store = .use(other) }
  let third = try await manager(store).load(url, options: elsewhere)
  let storedElsewhere = await other.count
  expect(third.source == .network && storedElsewhere == 1, "this request used another store, which was empty")
  expect(try await manager(store).load(url, options: elsewhere).source == .disk, "now the other store has the response")
  let unstored = try await manager(store).load(url, options: RequestOptions { $0.store = .disabled })
  expect(unstored.source == .network, "a request without a store loads from the network")
  expect(network.requests.count == 3, "3 requests in all")
} catch {
  expect(false, "no error (\(error))")
}
