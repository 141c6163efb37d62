#if Gateway
import NIOCore

/// How many threads can run at once.
public enum ProcessorCount {
  public static var value: Int { max(1, System.coreCount) }
}
#endif
