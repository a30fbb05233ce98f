/*
 * rest-host.c - what is of the host: images, and numbers for Prometheus.
 */
#include "image.h"
#include "metrics.h"
#include "rest.h"

static int list_one(const char *name, void *data)
{
	AUTO_CLOSE int dir = image_open(name);
	json_t *manifest = dir < 0 ? NULL : image_manifest(dir, name);
	json_t *image = json_object();
	static const char *const keys[][2] = {
		{"id", "id"},		{"recipe", "recipe"},
		{"created", "created"}, {"kernel_release", "kernelRelease"},
		{"ports", "ports"},
	};

	json_object_set_new(image, "name", json_string(name));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		json_t *value = json_object_get(manifest, keys[i][0]);

		if (value)
			json_object_set(image, keys[i][1], value);
	}
	if (manifest)
		json_array_append(data, image);
	json_decref(image);
	json_decref(manifest);
	return 0;
}

int rest_images(struct call *c)
{
	json_t *list = json_array();
	int r = names_each("image", list_one, list);

	if (r < 0) {
		json_decref(list);
		return answer_failure(c, -r, last_message());
	}
	return answer_json(200, json_pack("{s:o}", "images", list));
}

int rest_metrics(struct call *c)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int r = out ? metrics_print(out, true) : -EX_OSERR;

	if (out)
		fclose(out);
	if (r < 0)
		return answer_failure(c, -r, last_message());
	return answer_text(200, "text/plain; version=0.0.4; charset=utf-8",
			   text, len);
}
