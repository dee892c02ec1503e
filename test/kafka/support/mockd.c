/*
 * A mock cluster of librdkafka as a process. Prints its bootstrap list, then answers each command on standard input with a
 * line: "ok" or what is wrong. It ends with its input, so it never outlives who started it.
 *
 *   topic NAME PARTITIONS REPLICATION     errors APIKEY CODE...    (for the next requests of that kind, in turn)
 *   topic-error NAME CODE  (0: none)      clear APIKEY
 *   leader TOPIC PARTITION BROKER         down BROKER   up BROKER   rtt BROKER MILLISECONDS
 *   versions APIKEY MIN MAX
 */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 256

static rd_kafka_mock_cluster_t *cluster;

static int number(char **words, int count, int at) { return at < count ? atoi(words[at]) : -1; }

static int is(char **words, int count, const char *name, int arguments) {
  return strcmp(words[0], name) == 0 && count == arguments + 1;
}

static rd_kafka_resp_err_t push_errors(char **words, int count) {
  rd_kafka_resp_err_t errors[MAX_WORDS];
  for (int i = 2; i < count; i++) errors[i - 2] = (rd_kafka_resp_err_t)atoi(words[i]);
  rd_kafka_mock_push_request_errors_array(cluster, (int16_t)atoi(words[1]), (size_t)(count - 2), errors);
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t obey(char **words, int count) {
  int first = number(words, count, 1), second = number(words, count, 2), third = number(words, count, 3);
  if (strcmp(words[0], "errors") == 0 && count > 2) return push_errors(words, count);
  if (is(words, count, "topic", 3)) return rd_kafka_mock_topic_create(cluster, words[1], second, third);
  if (is(words, count, "leader", 3)) return rd_kafka_mock_partition_set_leader(cluster, words[1], second, third);
  if (is(words, count, "down", 1)) return rd_kafka_mock_broker_set_down(cluster, first);
  if (is(words, count, "up", 1)) return rd_kafka_mock_broker_set_up(cluster, first);
  if (is(words, count, "rtt", 2)) return rd_kafka_mock_broker_set_rtt(cluster, first, second);
  if (is(words, count, "versions", 3))
    return rd_kafka_mock_set_apiversion(cluster, (int16_t)first, (int16_t)second, (int16_t)third);
  if (is(words, count, "topic-error", 2)) {
    rd_kafka_mock_topic_set_error(cluster, words[1], (rd_kafka_resp_err_t)second);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  if (is(words, count, "clear", 1)) {
    rd_kafka_mock_clear_request_errors(cluster, (int16_t)first);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  return RD_KAFKA_RESP_ERR__INVALID_ARG;
}

int main(int argc, char **argv) {
  char why[512], line[8192], *words[MAX_WORDS];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "log_level", "3", why, sizeof(why));
  rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
  cluster = client == NULL ? NULL : rd_kafka_mock_cluster_new(client, argc > 1 ? atoi(argv[1]) : 1);
  if (cluster == NULL) return 1;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
  while (fgets(line, sizeof(line), stdin) != NULL) {
    int count = 0;
    for (char *word = strtok(line, " \n"); word != NULL && count < MAX_WORDS; word = strtok(NULL, " \n"))
      words[count++] = word;
    rd_kafka_resp_err_t error = count == 0 ? RD_KAFKA_RESP_ERR__INVALID_ARG : obey(words, count);
    printf("%s\n", error == RD_KAFKA_RESP_ERR_NO_ERROR ? "ok" : rd_kafka_err2str(error));
  }
  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(client);
  return 0;
}
