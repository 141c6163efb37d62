#if Origin
internal import CacheTesting
internal import HTTPTypes
internal import NIOCore

/// The recorder of an origin's requests and counters.
final class OriginRecorder: Sendable {
  private struct State: Sendable {
    var total = OriginCounters()
    var paths: [String: OriginCounters] = [:]
    var log: CircularBuffer<ReceivedRequest> = []
    var nextOrder = 0
    var nextConnection = 0

    mutating func count(_ path: String?, _ change: (inout OriginCounters) -> Void) {
      change(&total)
      if let path { change(&paths[path, default: OriginCounters()]) }
    }
  }

  private let state = WatchedState(State())
  private let logLimit: Int

  init(logLimit: Int) { self.logLimit = max(0, logLimit) }

  // MARK: Events

  func connectionOpened() -> Int {
    state.update { state in
      state.total.connectionsAccepted += 1
      state.total.openConnections += 1
      defer { state.nextConnection += 1 }
      return state.nextConnection
    }
  }

  func connectionClosed() { state.update { $0.total.openConnections -= 1 } }

  func received(bytes: Int) { state.update { $0.total.bytesReceived += bytes } }

  func receivedBody(bytes: Int, path: String) { state.update { $0.count(path) { $0.requestBodyBytes += bytes } } }

  /// Adds a request to the log and the counters, and assigns its position.
  func record(_ request: ReceivedRequest, bytes: Int) -> ReceivedRequest {
    state.update { [logLimit] state in
      var request = request
      request.order = state.nextOrder
      state.nextOrder += 1
      state.count(request.path) {
        $0.requests += 1
        if request.isConditional { $0.conditionalRequests += 1 }
      }
      state.paths[request.path]?.bytesReceived += bytes
      state.log.append(request)
      if state.log.count > logLimit { _ = state.log.popFirst() }
      return request
    }
  }

  func recordNotModified(_ path: String) { state.update { $0.count(path) { $0.notModified += 1 } } }

  /// Counts sent bytes. The numbers are negative if bytes that were counted could not be sent.
  func sent(bytes: Int, ofBody: Int, path: String?) {
    state.update {
      $0.count(path) {
        $0.bytesSent += bytes
        $0.bodyBytesSent += ofBody
      }
    }
  }

  // MARK: Queries

  var total: OriginCounters { state.read { $0.total } }

  func counters(for path: String) -> OriginCounters { state.read { $0.paths[path] ?? OriginCounters() } }

  var requests: [ReceivedRequest] { state.read { Array($0.log) } }

  func reset() {
    state.update { state in
      let open = state.total.openConnections
      state.total = OriginCounters()
      state.total.openConnections = open
      state.paths = [:]
      state.log = []
      state.nextOrder = 0
    }
  }

  func waitForRequests(path: String?, count: Int) async {
    await state.wait { state in
      let counters = path.map { state.paths[$0] ?? OriginCounters() } ?? state.total
      return counters.requests >= count
    }
  }

  func waitForRequestBody(path: String, bytes: Int) async {
    await state.wait { ($0.paths[path]?.requestBodyBytes ?? 0) >= bytes }
  }

  func waitForOpenConnections(atMost count: Int) async { await state.wait { $0.total.openConnections <= count } }

  /// Resumes all waiting calls.
  func close() { state.close() }
}
#endif
