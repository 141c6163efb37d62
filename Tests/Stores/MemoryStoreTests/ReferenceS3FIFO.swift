import CacheTesting

/// S3-FIFO as described by its paper and by its authors' simulator (libCacheSim, default parameters). It uses plain arrays,
/// ordered from the oldest to the newest.
struct ReferenceS3FIFO {
  /// A first-in, first-out queue whose objects can be found and removed.
  private struct Queue {
    struct Object {
      var weight: Int
      var frequency = 0
    }

    private var order: [Int] = []
    private(set) var objects: [Int: Object] = [:]
    private(set) var weight = 0

    mutating func push(_ id: Int, _ object: Object) {
      order.append(id)
      objects[id] = object
      weight += object.weight
    }

    mutating func pop() -> (id: Int, object: Object)? {
      guard let id = order.first, let object = remove(id) else { return nil }
      return (id, object)
    }

    mutating func remove(_ id: Int) -> Object? {
      guard let object = objects.removeValue(forKey: id), let position = order.firstIndex(of: id) else { return nil }
      order.remove(at: position)
      weight -= object.weight
      return object
    }

    /// Raises the frequency of an object and returns whether the queue contains it.
    mutating func hit(_ id: Int) -> Bool {
      guard objects[id] != nil else { return false }
      objects[id]?.frequency += 1
      return true
    }
  }

  private let capacity: Int
  private let smallCapacity: Int
  private let mainCapacity: Int
  private let ghostCapacity: Int
  private let countsBytes: Bool
  private var small = Queue()
  private var main = Queue()
  private var ghost = Queue()
  private var hasEvicted = false

  init(capacity: Int, countsBytes: Bool) {
    self.capacity = capacity
    self.countsBytes = countsBytes
    smallCapacity = Int(Double(capacity) * 0.1)
    mainCapacity = capacity - smallCapacity
    ghostCapacity = Int(Double(capacity) * 0.9)
  }

  /// Returns whether the request is a hit. A missed object is stored.
  mutating func request(_ request: Trace.Request) -> Bool {
    let id = request.object
    let weight = countsBytes ? request.size : 1
    if small.hit(id) { return true }
    let wasGhost = ghost.remove(id) != nil
    if main.hit(id) { return true }
    while small.weight + main.weight + weight > capacity { evict() }
    if wasGhost || (!hasEvicted && small.weight >= smallCapacity) {
      main.push(id, .init(weight: weight))
    } else {
      small.push(id, .init(weight: weight))
    }
    return false
  }

  private mutating func evict() {
    hasEvicted = true
    if main.weight > mainCapacity || small.objects.isEmpty { evictMain() } else { evictSmall() }
  }

  private mutating func evictMain() {
    while let (id, object) = main.pop() {
      if object.frequency == 0 { return }
      main.push(id, .init(weight: object.weight, frequency: min(object.frequency, 3) - 1))
    }
  }

  private mutating func evictSmall() {
    while let (id, object) = small.pop() {
      if object.frequency < 2 { return remember(id, object) }
      main.push(id, .init(weight: object.weight))
    }
  }

  private mutating func remember(_ id: Int, _ object: Queue.Object) {
    guard object.weight <= ghostCapacity else { return }
    while ghost.weight + object.weight > ghostCapacity { _ = ghost.pop() }
    ghost.push(id, object)
  }
}
