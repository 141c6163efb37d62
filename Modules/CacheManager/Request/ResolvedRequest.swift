internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The settings of a running load behind one reference. Every stage keeps them, and a copy of all settings costs more than some
/// stages do.
@dynamicMemberLookup
final class ResolvedRequest: Sendable {
  let settings: RequestSettings

  init(_ settings: RequestSettings) { self.settings = settings }

  convenience init(
    _ request: ResourceRequest, _ manager: ResourceManager.Configuration, _ core: LoadCoordinator, id: LoadID = LoadID()
  ) throws(CacheError) {
    self.init(try RequestSettings(request, manager, core, id: id))
  }

  /// Returns the load with the settings that `change` has changed.
  func with(_ change: (inout RequestSettings) -> Void) -> ResolvedRequest {
    var changed = settings
    change(&changed)
    return ResolvedRequest(changed)
  }

  /// The load, marked as nested if another load waits for it.
  var markedIfNested: ResolvedRequest { MemoryBudget.isInsideLoad ? with { $0.isNested = true } : self }

  subscript<Part>(dynamicMember part: KeyPath<RequestSettings, Part>) -> Part { settings[keyPath: part] }

  /// The URL of the load as text, for errors and events.
  var address: String { settings.url.address }

  /// Returns the error with the URL of the load, and with the redirects that led to `url`.
  ///
  /// An error that names another URL is about another request, such as one that a downloader sent for a token. It stays as it is.
  func naming(_ error: CacheError, at url: URL, after redirects: [URL]) -> CacheError {
    guard redirects.first == self.url else { return error.about(address) }
    let (asked, failed) = (address, url.address)
    guard error.url == nil || [asked, failed, url.absoluteString].contains(error.url) else { return error }
    var named = error
    named.url = asked
    named.redirectTargets = redirects.dropFirst().map(\.address) + [failed] + error.redirectTargets
    return named
  }

  var bodyTooLarge: CacheError {
    CacheError(.bodyTooLarge, reason: "the body is larger than the \(settings.maximumBodySize) bytes that this load takes")
  }

  /// Whether a response may be the result of a load: its status is accepted, and it is no redirect to follow.
  func isResult(_ response: HTTPResponse) -> Bool {
    settings.acceptedStatuses.contains(response.status.code) && (settings.redirectLimit == 0 || !RedirectRules.leads(response))
  }

  /// Returns the resource of a request. The caller's own key stands for the requested URL, and not for the target of a redirect.
  /// A redirect of a mirror is an exception: it still stands for the requested URL.
  func resource(of request: HTTPRequest, isFirstHop: Bool) -> String {
    if isFirstHop || settings.role == .mirror { return settings.resource }
    return ResourceID.make(uri: ResourceID.uri(of: request) ?? settings.url.absoluteString, partition: settings.partition)
  }

  /// Returns the URL from which the bytes of a stored response came. It differs from the requested URL if an alternative brought
  /// the response, or if the response is stored under the caller's own key.
  func origin(of metadata: StoredMetadata, for request: HTTPRequest, at url: URL) -> URL {
    let stored = metadata.request
    guard stored.path != request.path || stored.authority != request.authority || stored.scheme != request.scheme,
      ResourceID.uri(of: stored) != ResourceID.uri(of: request)
    else { return url }
    return stored.absoluteURL ?? url
  }

  func observe(_ event: @autoclosure () -> CacheEvent) {
    if let observer = settings.observer { observer.observe(event(), of: settings.id) }
  }

  var noDurableStore: CacheError {
    CacheError(.invalidConfiguration, reason: "there is no durable store that this load may write", url: address)
  }

  var managerIsClosed: CacheError { CacheError(.closed, reason: "the manager has been closed", url: address) }

  /// Reports the failure of a revalidation whose result may reach no waiter, also if a stored response was served instead.
  func observeBackground(_ result: Result<LoadOutcome, CacheError>) {
    switch result {
    case .failure(let error):
      if !error.isCancellation { observe(.backgroundFailed(url: address, error: error)) }
    case .success(let fetched):
      if let error = fetched.fallbackReason { observe(.backgroundFailed(url: address, error: error.about(address))) }
    }
  }

  func observeEnd<Value: Sendable>(_ result: Result<Resource<Value>, CacheError>, startedAt start: Duration) {
    switch result {
    case .success(let resource):
      observe(.finished(url: address, source: resource.source, error: nil, duration: settings.clock.uptime - start))
    case .failure(let error):
      observe(.finished(url: address, source: nil, error: error, duration: settings.clock.uptime - start))
    }
  }
}
